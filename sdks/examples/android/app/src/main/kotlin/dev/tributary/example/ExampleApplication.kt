package dev.tributary.example

import android.app.Application
import android.util.Log
import dev.tributary.Tributary
import dev.tributary.TributaryOptions

class ExampleApplication : Application() {
    override fun onCreate() {
        super.onCreate()
        // The key and the base address are in the manifest.
        Tributary.start(this, options = TributaryOptions(debug = true, onAttribution = { Log.i("example", "Affiliate: $it") }))
    }
}
