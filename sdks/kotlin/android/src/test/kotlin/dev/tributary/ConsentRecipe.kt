package dev.tributary

// What follows is the recipe of the README, word for word.
import android.content.Context
import dev.tributary.Tributary

/** In `Application.onCreate`; with what the person chose earlier, false without a choice. */
fun launchWithConsent(context: Context, hasConsent: Boolean) {
    Tributary.setEnabled(hasConsent)
    Tributary.start(context)
}

/** When the person chooses. */
fun onConsentChosen(isAccepted: Boolean) {
    Tributary.setEnabled(isAccepted)
}
