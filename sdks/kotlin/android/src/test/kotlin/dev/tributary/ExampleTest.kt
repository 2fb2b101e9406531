package dev.tributary

import android.app.Application
import android.content.Intent
import android.net.Uri
import android.os.Bundle
import android.view.View
import android.view.ViewGroup
import android.widget.Button
import android.widget.EditText
import android.widget.TextView
import dev.tributary.example.ExampleActivity
import dev.tributary.example.ExampleApplication
import org.junit.After
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config

/** The app of `sdks/examples/android`. */
@RunWith(RobolectricTestRunner::class)
@Config(sdk = [34], application = ExampleApplication::class)
class ExampleTest {
    private val app: Application get() = RuntimeEnvironment.getApplication()
    private val service = FakeService()

    @After
    fun end() = service.close()

    private fun views(group: ViewGroup): List<View> = (0 until group.childCount).map(group::getChildAt)

    private fun launch() {
        FakePlay.install(app, null)
        Tributary.installation = Installation(AndroidPlatform())
        shadowOf(app.packageManager).getInternalMutablePackageInfo(app.packageName).applicationInfo?.metaData = Bundle().apply {
            putString("dev.tributary.API_KEY", "pk_live_test")
            putString("dev.tributary.API_BASE_URL", service.url)
        }
        app.onCreate()
    }

    private fun link() = Intent(Intent.ACTION_VIEW, Uri.parse("tributary-example://open?via=spring-video"))

    private fun textOf(activity: ExampleActivity): TextView =
        views(views(activity.findViewById(android.R.id.content) as ViewGroup).single() as ViewGroup).last() as TextView

    private fun awaitAttribution(activity: ExampleActivity) =
        awaitOnMainThread("The affiliate") { textOf(activity).text.toString() == "Link: true\nAffiliate: aff_1" }

    private fun reset() {
        Tributary.reset()
        service.bodies.clear()
    }

    /** Identifies the next person, and returns whether a link was sent since the reset. */
    private fun nextPersonHasLink(): Boolean {
        var isAnswered = false
        Tributary.identify("next-person") { isAnswered = true }
        awaitOnMainThread("The answer") { isAnswered }
        return "spring-video" in service.bodies.joinToString()
    }

    @Test
    fun `an activity that is created again after a reset does not send the link of the person before`() {
        launch()
        val controller = Robolectric.buildActivity(ExampleActivity::class.java, link()).setup()
        awaitAttribution(controller.get())
        reset()
        controller.recreate()
        assertFalse(nextPersonHasLink())
    }

    @Test
    fun `an activity that is opened from the recent apps after a reset does not send the link of the person before`() {
        launch()
        awaitAttribution(Robolectric.buildActivity(ExampleActivity::class.java, link()).setup().get())
        reset()
        val again = link().addFlags(Intent.FLAG_ACTIVITY_LAUNCHED_FROM_HISTORY)
        Robolectric.buildActivity(ExampleActivity::class.java, again).setup()
        assertFalse(nextPersonHasLink())
    }

    @Test
    fun `an activity that is open sends a second link`() {
        launch()
        val controller = Robolectric.buildActivity(ExampleActivity::class.java, link()).setup()
        awaitAttribution(controller.get())
        controller.newIntent(Intent(Intent.ACTION_VIEW, Uri.parse("tributary-example://open?via=summer")))
        awaitOnMainThread("The second link") { "\"affiliateCode\":\"summer\"" in service.bodies.joinToString() }
    }

    @Test
    fun `the example shows the affiliate of a link, and reports a sign-up`() {
        launch()
        val activity = Robolectric.buildActivity(ExampleActivity::class.java, link()).setup().get()
        val views = views(views(activity.findViewById(android.R.id.content) as ViewGroup).single() as ViewGroup)
        val text = views.last() as TextView
        awaitOnMainThread("The affiliate") { text.text.toString() == "Link: true\nAffiliate: aff_1" }
        assertTrue("\"affiliateCode\":\"spring-video\"" in service.bodies.joinToString())

        (views.first { it is EditText } as EditText).setText("user-3")
        (views.first { it is Button } as Button).performClick()
        awaitOnMainThread("The sign-up") { text.text.startsWith("Sign up: true") }
        assertTrue("\"customerUserId\":\"user-3\"" in service.bodies.joinToString())
    }
}
