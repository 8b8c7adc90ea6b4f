package io.tamis;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;

/** Threads that add at once: no key is lost, and each is found by all as soon as its addition has returned. */
final class Threads {
    private Threads() {}

    private static final int THREADS = 8;
    private static final int KEYS = 20_000;

    static String check(Kind kind) throws Exception {
        // So small that threads meet in every word.
        TamisFilter together = TamisFilter.builder(THREADS * KEYS, 0.01).kind(kind).make();
        TamisFilter alone = TamisFilter.builder(THREADS * KEYS, 0.01).kind(kind).make();
        var done = new AtomicBoolean();
        var written = new int[THREADS * 64]; // one in a cache line
        List<Callable<String>> tasks = new ArrayList<>();
        for (int t = 0; t < THREADS; t++) {
            int thread = t;
            tasks.add(() -> {
                for (int i = 0; i < KEYS; i++) {
                    together.put(key(thread, i));
                    VISIBLE.setRelease(written, thread * 64, i + 1);
                }
                return null;
            });
        }
        var asking = new Thread(() -> {
            while (!done.get()) {
                for (int t = 0; t < THREADS; t++) {
                    int last = (int) VISIBLE.getAcquire(written, t * 64);
                    if (last > 0 && !together.mightContain(key(t, last - 1))) {
                        throw new AssertionError("a key that was added is denied");
                    }
                }
            }
        });
        var failed = new Throwable[1];
        asking.setUncaughtExceptionHandler((thread, e) -> failed[0] = e);
        asking.start();
        var pool = Executors.newFixedThreadPool(THREADS);
        for (var task : pool.invokeAll(tasks)) {
            task.get();
        }
        pool.shutdown();
        done.set(true);
        asking.join();
        if (failed[0] != null) {
            throw new AssertionError(failed[0]);
        }
        for (int t = 0; t < THREADS; t++) {
            for (int i = 0; i < KEYS; i++) {
                alone.put(key(t, i));
            }
        }
        // The order of additions changes which keys seem new, and nothing else.
        byte[] ours = together.toBytes();
        byte[] theirs = alone.toBytes();
        for (int i = Header.LENGTH; i < ours.length; i++) {
            if (ours[i] != theirs[i]) {
                return "bodies differ at " + i;
            }
        }
        double off = Math.abs((double) together.approximateElementCount() / alone.approximateElementCount() - 1);
        return off < 0.01 ? "done" : "counts differ: " + together.approximateElementCount() + ", " + alone.approximateElementCount();
    }

    private static final java.lang.invoke.VarHandle VISIBLE = java.lang.invoke.MethodHandles.arrayElementVarHandle(int[].class);

    private static long key(int thread, int i) {
        return (long) thread << 32 | i;
    }
}
