package dev.tributary

import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertThrows
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import java.io.File
import java.io.IOException

class FileStorageTest {
    @get:Rule
    val folder = TemporaryFolder()

    @Test
    fun `a text is kept until it is deleted`() {
        val storage = FileStorage(File(folder.root, "new/state.json"))
        assertNull(storage.read())
        storage.write("one")
        storage.write("Ü")
        assertEquals("Ü", FileStorage(File(folder.root, "new/state.json")).read())
        storage.delete()
        storage.delete()
        assertNull(storage.read())
        assertEquals(listOf("new"), folder.root.list()?.toList())
    }

    @Test
    fun `a file that cannot be read and a folder that cannot be made are no absent text`() {
        assertThrows(IOException::class.java) { FileStorage(folder.newFolder("state.json")).read() }
        val file = folder.newFile("file")
        assertThrows(IOException::class.java) { FileStorage(File(file, "state.json")).read() }
    }

    @Test
    fun `a text that cannot be written leaves the earlier one`() {
        val file = folder.newFile("state.json")
        file.writeText("one")
        folder.newFolder("state.json.new")
        assertThrows(IOException::class.java) { FileStorage(file).write("two") }
        assertEquals("one", file.readText())
    }
}
