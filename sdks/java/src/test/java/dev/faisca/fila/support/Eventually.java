package dev.faisca.fila.support;

import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/** Waits for what must come to hold, with a generous limit. */
public final class Eventually {
    private Eventually() {}

    public static void holds(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (!condition.call()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("did not come to hold: " + what);
            }
            Thread.sleep(20);
        }
    }
}
