plugins {
    id("com.android.library")
    id("org.jetbrains.kotlin.android")
}

android {
    namespace = "dev.tributary.flutter"
    compileSdk = 36
    defaultConfig { minSdk = 21 }
    sourceSets["main"].kotlin.srcDir("src/main/kotlin")
}

kotlin { jvmToolchain(17) }

dependencies { implementation("dev.tributary:tributary-android:0.1.0") }
