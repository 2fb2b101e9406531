package dev.tributary

import java.io.File
import java.io.IOException
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger

/** A clock and timers that move only when a test says so. */
class TestClock(private var time: Long) {
    private class Timer(val at: Long, val run: () -> Unit)

    private var elapsed = 0L
    private var timers: List<Timer> = emptyList()

    @Synchronized fun now(): Long = time

    @Synchronized fun shift(ms: Long) {
        time += ms
    }

    @Synchronized fun after(ms: Long, run: () -> Unit): Cancel {
        val timer = Timer(elapsed + ms, run)
        timers = timers + timer
        return Cancel { synchronized(this) { timers = timers - timer } }
    }

    @Synchronized fun clear() {
        timers = emptyList()
    }

    /** Moves to the next timer within this time, or by all of it, and runs that timer. */
    @Synchronized fun tick(ms: Long): Map<String, Any> {
        val next = timers.filter { it.at <= elapsed + ms }.minByOrNull { it.at }
        val step = (next?.at ?: (elapsed + ms)) - elapsed
        time += step
        elapsed += step
        if (next != null) {
            timers = timers - next
            next.run()
        }
        return mapOf("elapsed" to step, "ran" to (next != null))
    }
}

/** The platform of one process of the app. Counts what is under way; without a clock the time is real. */
class TestPlatform(
    private val real: Platform,
    private val clock: TestClock?,
    private val random: Double,
    private val nextId: () -> String,
) : Platform(real.name) {
    /** How many tasks and callbacks are waiting or running. */
    val tasks = AtomicInteger()

    /** How many requests are not answered. */
    val requests = AtomicInteger()
    private val posts = ConcurrentLinkedQueue<Cancel>()

    @Volatile private var isDead = false

    fun kill() {
        isDead = true
        posts.forEach(Cancel::cancel)
    }

    override fun now(): Long = clock?.now() ?: real.now()

    override fun random(): Double = if (clock == null) real.random() else random

    override fun newId(): String = if (clock == null) real.newId() else nextId()

    override fun execute(run: Runnable) = count(run) { real.execute(it) }

    override fun deliver(run: Runnable) = count(run) { real.deliver(it) }

    override fun after(ms: Long, run: Runnable): Cancel =
        clock?.after(ms) { execute(run) } ?: real.after(ms) { execute(run) }

    override fun post(url: String, apiKey: String, body: String, onEnd: (Result<HttpResponse>) -> Unit): Cancel {
        requests.incrementAndGet()
        val post = real.post(url, apiKey, body) {
            if (!isDead) onEnd(it)
            requests.decrementAndGet()
        }
        posts.add(post)
        return post
    }

    private fun count(run: Runnable, submit: (Runnable) -> Unit) {
        tasks.incrementAndGet()
        submit {
            try {
                if (!isDead) run.run()
            } finally {
                tasks.decrementAndGet()
            }
        }
    }
}

/** A storage in a file that fails on demand. */
class FaultyStorage(file: File, @Volatile private var mode: String) : Storage {
    private val real = FileStorage(file)

    fun isFaulty(): Boolean = mode != "ok"

    fun setMode(next: String) {
        mode = next
    }

    override fun read(): String? {
        if (mode == "unreadable") throw IOException("The storage is unreadable.")
        return real.read()
    }

    override fun write(text: String) {
        if (mode == "unwritable") throw IOException("The storage is unwritable.")
        real.write(text)
    }

    override fun delete() {
        if (mode == "unwritable") throw IOException("The storage is unwritable.")
        real.delete()
    }
}
