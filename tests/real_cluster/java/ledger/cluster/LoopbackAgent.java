package ledger.cluster;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import jdk.internal.org.objectweb.asm.ClassReader;
import jdk.internal.org.objectweb.asm.ClassVisitor;
import jdk.internal.org.objectweb.asm.ClassWriter;
import jdk.internal.org.objectweb.asm.MethodVisitor;
import jdk.internal.org.objectweb.asm.Opcodes;

/**
 * Makes every RocketMQ server of this JVM listen on loopback only. Releases before 5.0 have no setting for it, and later
 * ones still open their replication port to the world: they all write {@code new InetSocketAddress(port)}, which is
 * turned into {@code new InetSocketAddress("127.0.0.1", port)} when their classes are loaded. The gRPC server of a proxy
 * does the same in the library it uses, and a proxy's remoting server has no setting for its address: its default,
 * the text {@code "0.0.0.0"}, is replaced where it is written.
 */
public final class LoopbackAgent {
    private static final int API = Opcodes.ASM8;
    private static final String LOOPBACK = "127.0.0.1";

    private LoopbackAgent() {
    }

    public static void premain(String arguments, Instrumentation instrumentation) {
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] content) {
                return name != null && isServer(name) ? onLoopback(content) : null;
            }
        });
    }

    private static boolean isServer(String name) {
        return name.startsWith("org/apache/rocketmq/") || name.endsWith("io/grpc/netty/NettyServerBuilder");
    }

    private static byte[] onLoopback(byte[] content) {
        ClassReader read = new ClassReader(content);
        ClassWriter written = new ClassWriter(read, ClassWriter.COMPUTE_MAXS);
        boolean[] changed = {false};
        read.accept(new ClassVisitor(API, written) {
            @Override
            public MethodVisitor visitMethod(
                    int access, String name, String descriptor, String signature, String[] exceptions) {
                MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
                return new MethodVisitor(API, next) {
                    @Override
                    public void visitLdcInsn(Object constant) {
                        boolean isEveryAddress = "0.0.0.0".equals(constant);
                        changed[0] |= isEveryAddress;
                        super.visitLdcInsn(isEveryAddress ? LOOPBACK : constant);
                    }

                    @Override
                    public void visitMethodInsn(
                            int opcode, String owner, String called, String form, boolean isInterface) {
                        String asked = form;
                        if ("java/net/InetSocketAddress".equals(owner) && "<init>".equals(called)
                                && "(I)V".equals(form)) {
                            super.visitLdcInsn(LOOPBACK);
                            super.visitInsn(Opcodes.SWAP);
                            asked = "(Ljava/lang/String;I)V";
                            changed[0] = true;
                        }
                        super.visitMethodInsn(opcode, owner, called, asked, isInterface);
                    }
                };
            }
        }, 0);
        return changed[0] ? written.toByteArray() : null;
    }
}
