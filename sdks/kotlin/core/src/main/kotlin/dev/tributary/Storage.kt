package dev.tributary

import java.io.File
import java.io.FileOutputStream
import java.io.IOException

/** Keeps one text. Called on the SDK's thread. Every function throws [IOException] if it fails. */
public interface Storage {
    /** Returns the text, or null if there is none. Throws if it cannot know. */
    public fun read(): String?

    public fun write(text: String)

    public fun delete()
}

/** Keeps the text in a file, which is asked for on the SDK's thread. A write replaces the file as a whole. */
public class FileStorage(find: () -> File) : Storage {
    private val file by lazy(LazyThreadSafetyMode.NONE, find)

    public constructor(file: File) : this({ file })

    override fun read(): String? {
        if (file.exists()) return file.readText()
        // A folder that is not there yet differs from one that is locked.
        val folder = file.absoluteFile.parentFile
        if (folder != null && !folder.isDirectory && !folder.mkdirs()) throw IOException("$folder cannot be read.")
        return null
    }

    override fun write(text: String) {
        val next = File("${file.path}.new")
        FileOutputStream(next).use {
            it.write(text.toByteArray())
            it.fd.sync()
        }
        if (!next.renameTo(file)) throw IOException("$file cannot be replaced.")
    }

    override fun delete() {
        if (!file.delete() && file.exists()) throw IOException("$file cannot be deleted.")
    }
}
