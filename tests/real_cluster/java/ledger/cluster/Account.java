package ledger.cluster;

import org.apache.rocketmq.remoting.RPCHook;

/** The account with which every client of this JVM signs requests, if a system property names one. */
final class Account {
    private Account() {
    }

    /** The hook that signs requests; null without an account. */
    static RPCHook signature() throws Exception {
        String access = System.getProperty("ledger.access.key");
        if (access == null) {
            return null;
        }
        Class<?> credentials = Class.forName("org.apache.rocketmq.acl.common.SessionCredentials");
        Object account = credentials.getConstructor(String.class, String.class)
                .newInstance(access, System.getProperty("ledger.secret.key"));
        return (RPCHook) Class.forName("org.apache.rocketmq.acl.common.AclClientRPCHook")
                .getConstructor(credentials).newInstance(account);
    }
}
