package dev.tributary

import java.io.File
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit

/** Where the SDK runs: the JVM, or Android. Its functions are called on the test's thread. */
interface Runtime {
    /** What it can do beyond the rules for every SDK. */
    val abilities: List<String>

    /** The file that holds the state. */
    val file: File

    /** The runtime's own platform. */
    fun platform(): Platform

    /** Begins a process of the app, in which the SDK is not started. */
    fun begin(platform: Platform)

    /** Starts the SDK. Without a storage in the options it uses [file]. */
    fun start(apiKey: String, options: TributaryOptions): Boolean

    fun identify(userId: String, signature: String?, onResult: ResultCallback)

    fun attribute(url: String, onResult: ResultCallback)

    fun applyCode(code: String, onResult: ResultCallback)

    fun attributedAffiliateId(): String?

    fun reset()

    fun setEnabled(enabled: Boolean)

    /** Reports `online` or `foreground` to the SDK. */
    fun event(name: String)

    /** Runs what waits on the main thread. */
    fun idle() {}

    /** Sets what the app store passes to the app. */
    fun setReferrer(text: String?) {}
}

/** Lets a Node program of `sdks/conformance` play against a runtime. See `remote.mjs`. */
class Player(private val runtime: Runtime, program: String, vararg arguments: String) : AutoCloseable {
    private val node = ProcessBuilder("node", "${System.getProperty("sdks")}/conformance/$program", *arguments)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start()
    private val input = node.outputStream.bufferedWriter()
    private val messages = LinkedBlockingQueue<Map<*, *>>()
    private var device: Device? = null

    /** The names of what can be played. */
    val names: List<String>

    /** How many scenarios there are for all runtimes. */
    val total: Int

    init {
        Thread {
            node.inputStream.bufferedReader().forEachLine { messages.put(Json.parse(it) as Map<*, *>) }
            messages.put(mapOf("end" to null, "error" to "The Node program has ended."))
        }.apply { isDaemon = true }.start()
        val greeting = messages.poll(2, TimeUnit.MINUTES) ?: error("The Node program does not answer.")
        names = (greeting["names"] as? List<*> ?: error("${greeting["error"]}")).map { it as String }
        total = (greeting["total"] as Long).toInt()
    }

    /** Plays the scenario with this name. Throws if it fails. */
    fun play(name: String) {
        send(mapOf("run" to name))
        val endAt = System.nanoTime() + TimeUnit.SECONDS.toNanos(60)
        while (true) {
            val message = messages.poll(1, TimeUnit.MILLISECONDS)
            runtime.idle()
            if (System.nanoTime() > endAt) throw AssertionError("The scenario does not end.")
            if (message == null) continue
            if ("end" in message) {
                message["error"]?.let { throw AssertionError("$it") }
                return
            }
            val answer = { result: Any? -> send(mapOf("id" to message["id"], "result" to result.takeIf { it != Unit })) }
            perform(message["call"] as String, message["arguments"] as List<*>, answer)
        }
    }

    override fun close() {
        input.close()
        node.waitFor(10, TimeUnit.SECONDS)
        node.destroy()
    }

    private fun send(message: Map<String, Any?>) {
        synchronized(input) {
            input.write(Json.write(message) + "\n")
            input.flush()
        }
    }

    private fun perform(call: String, arguments: List<*>, answer: (Any?) -> Unit) {
        val first = arguments.firstOrNull()
        if (call == "begin") {
            device?.end()
            device = Device(runtime, first as Map<*, *>)
            return answer(null)
        }
        val device = checkNotNull(device)
        when (call) {
            "start" -> answer(device.start())
            "call" -> device.call(first as String, arguments[1] as List<*>, answer)
            "tick" -> answer(device.clock.tick(first as Long))
            "shift" -> answer(device.clock.shift(first as Long))
            "restart" -> answer(device.restart())
            "storage" -> answer(device.storage.setMode(first as String))
            "event" -> answer(runtime.event(first as String))
            "stored" -> answer(runtime.file.takeIf(File::exists)?.readText())
            "warnings" -> answer(device.lines.size)
            "moving" -> answer(device.moving())
            else -> error("No such call: $call")
        }
    }
}

/** A device of a scenario: its clock, its storage, and one process of the app at a time. */
private class Device(private val runtime: Runtime, settings: Map<*, *>) {
    private val isReal = "now" !in settings
    private val given = settings["options"] as? Map<*, *> ?: emptyMap<String, Any?>()
    private val random = (given["random"] as? Number ?: 0).toDouble()
    private val host = given["apiBaseUrl"] ?: settings["host"]
    private val apiKey = (given["apiKey"] ?: settings["apiKey"] ?: "pk_live_test") as String
    private var process: TestPlatform
    val clock = TestClock(settings["now"] as? Long ?: 0)
    val storage = FaultyStorage(runtime.file, settings["storage"] as? String ?: "ok")
    val lines = LinkedBlockingQueue<String>()
    private val isOffByDefault = "deferredOffByDefault" in runtime.abilities
    private val isStorageFaulty = storage.isFaulty()
    private var lastId = 0

    init {
        runtime.file.delete()
        runtime.file.parentFile.mkdirs()
        (settings["store"] as String?)?.let(runtime.file::writeText)
        runtime.setReferrer(settings["referrer"] as String?)
        process = newProcess()
    }

    private fun newProcess(): TestPlatform {
        val platform = TestPlatform(runtime.platform(), clock.takeUnless { isReal }, random) {
            lastId += 1
            "00000000-0000-4000-8000-${lastId.toString().padStart(12, '0')}"
        }
        runtime.begin(platform)
        return platform
    }

    fun start(): Boolean {
        val isThrowing = given["throwingCallbacks"] == true
        return runtime.start(
            apiKey,
            TributaryOptions(
                apiBaseUrl = host as String,
                deferredMatch = if ("deferredMatch" in given || isOffByDefault) given["deferredMatch"] as Boolean? else false,
                storage = storage.takeIf { isStorageFaulty },
                debug = given["debug"] == true,
                logger = { if (isThrowing) error("The host app is broken.") else lines.put(it) },
                onAttribution = { if (isThrowing) error("The host app is broken.") },
            ),
        )
    }

    fun call(name: String, arguments: List<*>, answer: (Any?) -> Unit) {
        val first = arguments.firstOrNull()
        // A process that ended learns nothing.
        val caller = process
        val onResult = ResultCallback { if (caller === process) answer(it) }
        when (name) {
            "identify" -> runtime.identify(first as String, arguments[1] as String?, onResult)
            "attribute" -> runtime.attribute(first as String, onResult)
            "applyCode" -> runtime.applyCode(first as String, onResult)
            "attributedAffiliateId" -> answer(runtime.attributedAffiliateId())
            "reset" -> answer(runtime.reset())
            "setEnabled" -> answer(runtime.setEnabled(first == true))
            else -> error("No such call: $name")
        }
    }

    fun restart() {
        end()
        process = newProcess()
    }

    fun end() {
        process.kill()
        clock.clear()
    }

    fun moving(): Map<String, Any> = mapOf("tasks" to process.tasks.get(), "requests" to process.requests.get())
}
