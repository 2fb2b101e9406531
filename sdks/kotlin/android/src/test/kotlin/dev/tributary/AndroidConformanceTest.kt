package dev.tributary

import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.ParameterizedRobolectricTestRunner
import org.robolectric.ParameterizedRobolectricTestRunner.Parameters
import org.robolectric.annotation.Config

/** Plays the scenarios of `sdks/conformance` on the classes of Android. */
@RunWith(ParameterizedRobolectricTestRunner::class)
@Config(sdk = [34])
class AndroidConformanceTest(private val name: String) {
    @Test
    fun `the scenario passes`() = player.play(name)

    companion object {
        // The Node program ends with the tests.
        private val player = AndroidRuntime().let { Player(it, "play-remote.mjs", it.abilities.joinToString(",")) }
            .also { println("Android: ${it.names.size} of ${it.total} scenarios apply.") }

        @JvmStatic
        @Parameters(name = "{0}")
        fun scenarios(): List<Array<Any>> = player.names.map { arrayOf<Any>(it) }
    }
}
