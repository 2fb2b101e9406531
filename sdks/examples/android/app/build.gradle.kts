plugins {
    id("com.android.application") version "8.13.0"
    id("org.jetbrains.kotlin.android") version "2.2.21"
}

android {
    namespace = "dev.tributary.example"
    compileSdk = 36
    defaultConfig {
        applicationId = "dev.tributary.example"
        minSdk = 21
        targetSdk = 36
        versionCode = 1
        versionName = "1"
        // gradle -Pkey=pk_live_… -PapiBaseUrl=http://10.0.2.2:PORT installDebug
        manifestPlaceholders["key"] = providers.gradleProperty("key").getOrElse("")
        manifestPlaceholders["apiBaseUrl"] = providers.gradleProperty("apiBaseUrl").getOrElse("")
    }
    sourceSets["main"].kotlin.srcDir("src/main/kotlin")
}

kotlin { jvmToolchain(17) }

dependencies { implementation("dev.tributary:tributary-android:0.1.0") }
