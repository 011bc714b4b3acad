package ledger.cluster;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Methods that only some releases have, or that have other types in other releases: they are looked up when they are needed. */
final class Late {
    private Late() {
    }

    static boolean has(Object target, String method) {
        for (Method each : target.getClass().getMethods()) {
            if (each.getName().equals(method)) {
                return true;
            }
        }
        return false;
    }

    /** Calls the method with this name and number of arguments. */
    static Object call(Object target, String name, Object... arguments) throws Exception {
        Method method = method(target, name, arguments.length);
        method.setAccessible(true);
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause() instanceof Exception fault ? fault : thrown;
        }
    }

    /** The constant with this name, of the type of a method's parameter. */
    static Object constant(Object target, String name, int count, int place, String constant) {
        for (Object each : method(target, name, count).getParameterTypes()[place].getEnumConstants()) {
            if (each.toString().equals(constant)) {
                return each;
            }
        }
        throw new IllegalArgumentException(name + " of this release knows no " + constant);
    }

    /** The type of a parameter of a method. */
    static Class<?> type(Object target, String name, int count, int place) {
        return method(target, name, count).getParameterTypes()[place];
    }

    static Object read(Object target, String name) throws Exception {
        Field field = target.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(target);
    }

    private static Method method(Object target, String name, int count) {
        for (Method each : target.getClass().getMethods()) {
            if (each.getName().equals(name) && each.getParameterCount() == count) {
                return each;
            }
        }
        throw new IllegalArgumentException("this release has no " + name + " of " + count + " arguments");
    }
}
