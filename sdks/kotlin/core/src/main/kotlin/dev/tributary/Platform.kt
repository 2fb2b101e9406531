package dev.tributary

import java.util.Random
import java.util.UUID
import java.util.concurrent.ScheduledThreadPoolExecutor
import java.util.concurrent.TimeUnit

/** What the SDK needs of its runtime. The conformance tests replace the clock, the timers and the randomness. */
public open class Platform(
    /** The name of the SDK in requests. */
    public val name: String = "jvm",
) {
    private val jitter by lazy(::Random)
    private val executor by lazy {
        ScheduledThreadPoolExecutor(1) { run -> Thread(run, "tributary").apply { isDaemon = true } }
            .apply { removeOnCancelPolicy = true }
    }

    /** Returns the time of the device, epoch ms. */
    public open fun now(): Long = System.currentTimeMillis()

    /** Returns a number from 0 (included) to 1 (excluded). */
    public open fun random(): Double = jitter.nextDouble()

    /** Returns a UUID v4 from a secure source. */
    public open fun newId(): String = UUID.randomUUID().toString()

    /** Runs something on the SDK's thread. Order is kept. */
    public open fun execute(run: Runnable) {
        executor.execute(run)
    }

    /** Runs something once on the SDK's thread after this time. */
    public open fun after(ms: Long, run: Runnable): Cancel {
        val timer = executor.schedule(run, ms, TimeUnit.MILLISECONDS)
        return Cancel { timer.cancel(false) }
    }

    /** Posts a JSON document. Calls `onEnd` once, on any thread. */
    public open fun post(url: String, apiKey: String, body: String, onEnd: (Result<HttpResponse>) -> Unit): Cancel =
        HttpPost(url, apiKey, body, onEnd).start()

    /** Runs a callback of the app, on the thread where the app expects it. Called on the SDK's thread or the caller's. */
    public open fun deliver(run: Runnable) {
        executor.execute(run)
    }

    /** Writes a line for the developer. */
    public open fun log(line: String) {
        System.err.println("[tributary] $line")
    }
}
