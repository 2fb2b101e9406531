package dev.tributary.example

import android.app.Activity
import android.content.Intent
import android.os.Bundle
import android.widget.Button
import android.widget.EditText
import android.widget.LinearLayout
import android.widget.TextView
import dev.tributary.ResultCallback
import dev.tributary.Tributary

/** A shop with a sign-up and a field for the code of a creator. */
class ExampleActivity : Activity() {
    private lateinit var text: TextView

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        val user = EditText(this).apply { hint = "user id" }
        val code = EditText(this).apply { hint = "code of a creator" }
        text = TextView(this)
        val views = LinearLayout(this)
        views.orientation = LinearLayout.VERTICAL
        views.addView(user)
        views.addView(button("Sign up") { Tributary.identify(user.text.toString(), onResult = it) })
        views.addView(code)
        views.addView(button("Use code") { Tributary.applyCode(code.text.toString(), it) })
        views.addView(text)
        setContentView(views)
        open(intent)
    }

    override fun onNewIntent(intent: Intent) {
        super.onNewIntent(intent)
        open(intent)
    }

    private fun open(intent: Intent) {
        Tributary.attribute(intent) { show("Link", it) }
    }

    private fun button(label: String, call: (ResultCallback) -> Unit) = Button(this).apply {
        text = label
        setOnClickListener { call { show(label, it) } }
    }

    private fun show(what: String, result: Boolean) {
        text.text = "$what: $result\nAffiliate: ${Tributary.attributedAffiliateId() ?: "none"}"
    }
}
