package dev.tributary

import java.io.File
import java.util.concurrent.CompletableFuture

/** An app without a connection: nothing listens on port 1. */
fun main(arguments: Array<String>) {
    val sdk = TributarySdk(Platform())
    val environment = Environment(FileStorage(File(arguments[0])), "pk_live_test", "http://127.0.0.1:1")
    sdk.start(null, TributaryOptions(), environment)
    val result = CompletableFuture<Boolean>()
    sdk.identify("u") { result.complete(it) }
    println(result.get())
}
