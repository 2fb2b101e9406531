// What follows is the recipe of the README, word for word.
import Tributary

/// At launch; with what the person chose earlier, false without a choice.
func launchWithConsent(hasConsent: Bool) {
    Tributary.setEnabled(hasConsent)
    Tributary.start()
}

/// When the person chooses.
func onConsentChosen(isAccepted: Bool) {
    Tributary.setEnabled(isAccepted)
}
