pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}
dependencyResolutionManagement {
    repositories {
        google()
        mavenCentral()
        // `mvn install` in sdks/kotlin puts the SDK here.
        mavenLocal()
    }
}
rootProject.name = "tributary-example"
include(":app")
