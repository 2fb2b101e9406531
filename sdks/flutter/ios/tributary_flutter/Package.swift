// swift-tools-version: 5.9
import PackageDescription

let package = Package(
    name: "tributary_flutter",
    platforms: [.iOS(.v15)],
    products: [.library(name: "tributary-flutter", targets: ["tributary_flutter"])],
    dependencies: [.package(name: "Tributary", path: "../../../swift")],
    targets: [
        .target(
            name: "tributary_flutter",
            dependencies: [.product(name: "Tributary", package: "Tributary")]
        ),
    ]
)
