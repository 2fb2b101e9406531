package dev.tributary

import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.ParameterizedRobolectricTestRunner
import org.robolectric.ParameterizedRobolectricTestRunner.Parameters
import org.robolectric.annotation.Config

/** Attributes purchases on the classes of Android, with the real service. */
@RunWith(ParameterizedRobolectricTestRunner::class)
@Config(sdk = [34])
class EndToEndAndroidTest(private val name: String) {
    @Test
    fun `the purchase is attributed`() = player.play(name)

    companion object {
        // The Node program ends with the tests.
        private val player = Player(AndroidRuntime(), "purchase-remote.mjs", "store")

        @JvmStatic
        @Parameters(name = "{0}")
        fun flows(): List<Array<Any>> = player.names.map { arrayOf<Any>(it) }
    }
}
