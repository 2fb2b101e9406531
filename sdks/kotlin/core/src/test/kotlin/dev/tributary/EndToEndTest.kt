package dev.tributary

import org.junit.AfterClass
import org.junit.Test
import org.junit.runner.RunWith
import org.junit.runners.Parameterized
import org.junit.runners.Parameterized.Parameters

/** Attributes purchases on the JVM, with the real service. */
@RunWith(Parameterized::class)
class EndToEndTest(private val name: String) {
    @Test
    fun `the purchase is attributed`() = player.play(name)

    companion object {
        private val player = Player(JvmRuntime(), "purchase-remote.mjs")

        @JvmStatic
        @Parameters(name = "{0}")
        fun flows(): List<String> = player.names

        @JvmStatic
        @AfterClass
        fun end() = player.close()
    }
}
