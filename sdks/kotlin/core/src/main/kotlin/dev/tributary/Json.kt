package dev.tributary

/** Reads and writes JSON. Objects are maps, lists are lists, whole numbers are longs. */
internal object Json {
    fun write(value: Any?): String = StringBuilder().also { append(it, value) }.toString()

    /** Parses a whole JSON document. Throws [IllegalArgumentException] for anything else. */
    fun parse(text: String): Any? = Parser(text).document()

    private fun append(to: StringBuilder, value: Any?) {
        when (value) {
            is Map<*, *> -> appendAll(to, '{', '}', value.entries) { (name, item) ->
                appendText(to, name as String)
                to.append(':')
                append(to, item)
            }
            is Collection<*> -> appendAll(to, '[', ']', value) { append(to, it) }
            is String -> appendText(to, value)
            else -> to.append(value)
        }
    }

    private fun <T> appendAll(to: StringBuilder, open: Char, close: Char, items: Collection<T>, each: (T) -> Unit) {
        to.append(open)
        var isFirst = true
        for (item in items) {
            if (!isFirst) to.append(',')
            isFirst = false
            each(item)
        }
        to.append(close)
    }

    private fun appendText(to: StringBuilder, text: String) {
        to.append('"')
        for (char in text) {
            when {
                char == '"' || char == '\\' -> to.append('\\').append(char)
                char < ' ' || char.isSurrogate() || char == '\u2028' || char == '\u2029' ->
                    to.append("\\u").append((char.code + 0x10000).toString(16).substring(1))
                else -> to.append(char)
            }
        }
        to.append('"')
    }

    private class Parser(private val text: String) {
        private var at = 0

        fun document(): Any? {
            val value = value(0)
            if (peek() != END) fail()
            return value
        }

        private fun value(depth: Int): Any? {
            if (depth > MAX_DEPTH) fail()
            return when (peek()) {
                '{' -> objectAt(depth)
                '[' -> listAt(depth)
                '"' -> string()
                't' -> literal("true", true)
                'f' -> literal("false", false)
                'n' -> literal("null", null)
                else -> number()
            }
        }

        private fun objectAt(depth: Int): Map<String, Any?> {
            val values = LinkedHashMap<String, Any?>()
            items('}') {
                if (peek() != '"') fail()
                val name = string()
                if (peek() != ':') fail()
                at += 1
                values[name] = value(depth + 1)
            }
            return values
        }

        private fun listAt(depth: Int): List<Any?> {
            val values = ArrayList<Any?>()
            items(']') { values.add(value(depth + 1)) }
            return values
        }

        private fun items(close: Char, item: () -> Unit) {
            at += 1
            if (peek() == close) {
                at += 1
                return
            }
            while (true) {
                item()
                val next = peek()
                at += 1
                if (next == close) return
                if (next != ',') fail()
            }
        }

        private fun string(): String {
            val result = StringBuilder()
            at += 1
            while (true) {
                when (val char = next()) {
                    '"' -> return result.toString()
                    '\\' -> result.append(escape())
                    else -> if (char < ' ') fail() else result.append(char)
                }
            }
        }

        private fun escape(): Char = when (val char = next()) {
            '"', '\\', '/' -> char
            'b' -> '\b'
            'f' -> '\u000c'
            'n' -> '\n'
            'r' -> '\r'
            't' -> '\t'
            'u' -> {
                var code = 0
                repeat(4) {
                    val digit = Character.digit(next(), 16)
                    if (digit < 0) fail()
                    code = code * 16 + digit
                }
                code.toChar()
            }
            else -> fail()
        }

        private fun <T> literal(word: String, value: T): T {
            if (!text.startsWith(word, at)) fail()
            at += word.length
            return value
        }

        private fun number(): Number {
            val match = NUMBER.find(text, at)?.value ?: fail()
            if (!text.startsWith(match, at)) fail()
            at += match.length
            return match.toLongOrNull() ?: match.toDouble()
        }

        /** Returns the next character that is not a space, without taking it. */
        private fun peek(): Char {
            while (at < text.length && text[at] in " \t\r\n") at += 1
            return if (at < text.length) text[at] else END
        }

        private fun next(): Char = if (at < text.length) text[at++] else fail()

        private fun fail(): Nothing = throw IllegalArgumentException("This is no JSON.")
    }

    private const val END = '\u0000'
    private const val MAX_DEPTH = 64
    private val NUMBER = Regex("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")
}
