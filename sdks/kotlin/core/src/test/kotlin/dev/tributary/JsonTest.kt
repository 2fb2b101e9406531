package dev.tributary

import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Test

class JsonTest {
    @Test
    fun `a document that is written and read is the same`() {
        val value = mapOf(
            "text" to "\"\\\n\u0001 Ü € 😀 \u2028",
            "list" to listOf(1L, -2L, 1.5, true, false, null, emptyList<Any>(), emptyMap<String, Any>()),
            "long" to 1_767_225_600_000,
        )
        assertEquals(value, Json.parse(Json.write(value)))
    }

    @Test
    fun `escapes and spaces are read`() {
        assertEquals(mapOf("a b" to listOf("\b\u000c\n\r\t/\\\"A")), Json.parse(" {\"a\\u0020b\" : [ \"\\b\\f\\n\\r\\t\\/\\\\\\\"\\u0041\" ]}\n"))
    }

    @Test
    fun `half a surrogate pair survives`() {
        assertEquals("\ud83d", Json.parse(Json.write("\ud83d")))
    }

    @Test
    fun `what is no JSON throws an IllegalArgumentException`() {
        val deep = "[".repeat(100_000)
        val texts = listOf(
            "", " ", "{", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "\"", "\"\\x\"", "\"\\u00g0\"", "\"\n\"", "nul", "01", "+1", "1.", "1 2",
            "[1}", "<html>", deep, "{\"a\":1", "\"\\u12", "-", "tru",
        )
        for (text in texts) assertThrows(text.take(10), IllegalArgumentException::class.java) { Json.parse(text) }
    }
}
