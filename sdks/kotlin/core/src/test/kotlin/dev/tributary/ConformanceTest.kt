package dev.tributary

import org.junit.AfterClass
import org.junit.Test
import org.junit.runner.RunWith
import org.junit.runners.Parameterized
import org.junit.runners.Parameterized.Parameters

/** Plays the scenarios of `sdks/conformance` on the JVM. */
@RunWith(Parameterized::class)
class ConformanceTest(private val name: String) {
    @Test
    fun `the scenario passes`() = player.play(name)

    companion object {
        private val player = JvmRuntime().let { Player(it, "play-remote.mjs", it.abilities.joinToString(",")) }

        @JvmStatic
        @Parameters(name = "{0}")
        fun scenarios(): List<String> = player.names

        @JvmStatic
        @AfterClass
        fun end() {
            println("JVM: ${player.names.size} of ${player.total} scenarios apply.")
            player.close()
        }
    }
}
