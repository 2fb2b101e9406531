package dev.tributary

import java.net.URLDecoder

/** What a link passes on: the token of a click, the code of a link, or both. */
public class Referral internal constructor(public val claimToken: String?, public val code: String?) {
    /** What identifies the referral. Codes are compared without case. */
    internal val identity: String = "${claimToken.orEmpty()} ${code.orEmpty().lowercase()}"

    public companion object {
        private val UUID = Regex("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", RegexOption.IGNORE_CASE)
        private val QUERY = Regex("^[^?#]*\\?([^#]*)")
        private val MALFORMED = Regex("%(?![0-9a-fA-F]{2})")
        private const val MAX_CODE_LENGTH = 200

        /** Returns the referral in the query of an address of any scheme, or null if it has none. */
        @JvmStatic
        public fun from(url: String): Referral? = QUERY.find(url)?.let { fromQuery(it.groupValues[1]) }

        /**
         * Returns the referral in a query string, or null if it has none. Reads `claim_token` and `via` only: `code` and
         * `ref` belong to OAuth and to other programs.
         */
        @JvmStatic
        public fun fromQuery(query: String): Referral? {
            val values = HashMap<String, String>()
            for (pair in query.split('&')) {
                val name = pair.substringBefore('=')
                // An empty value is none.
                if (name !in values) decode(pair.substringAfter('=', ""))?.takeIf(String::isNotEmpty)?.let { values[name] = it }
            }
            return of(values["claim_token"], values["via"])
        }

        /** Returns the referral with its valid parts, or null if it has none. */
        internal fun of(claimToken: String?, code: String?): Referral? {
            val token = claimToken?.lowercase()?.takeIf(UUID::matches)
            val text = code?.trim()?.takeIf { it.length in 1..MAX_CODE_LENGTH && it.none(::isControl) }
            return if (token == null && text == null) null else Referral(token, text)
        }

        private fun isControl(char: Char) = char < ' ' || char == '\u007f'

        /** Returns the decoded text, or null if an escape is malformed. */
        private fun decode(text: String): String? {
            if (MALFORMED.containsMatchIn(text)) return null
            // The replacement character stands for bytes that are no UTF-8.
            return URLDecoder.decode(text, "UTF-8").takeUnless { '\ufffd' in it }
        }
    }
}
