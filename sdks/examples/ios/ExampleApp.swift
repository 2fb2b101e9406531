import SwiftUI
import Tributary

/// Reads the key and the base address from `Info.plist`.
@main
struct ExampleApp: App {
    var body: some Scene {
        WindowGroup {
            ExampleView()
                .tributary(options: TributaryOptions(debug: true))
        }
    }
}

struct ExampleView: View {
    @State private var affiliate = "none"
    @State private var user = ""
    @State private var code = ""
    @State private var result = ""

    var body: some View {
        Form {
            Text("Affiliate: \(affiliate)")
            TextField("user id", text: $user)
            Button("Sign up") {
                Tributary.identify(userId: user, completion: show)
            }
            TextField("code of a creator", text: $code)
            Button("Use code") {
                Tributary.applyCode(code, completion: show)
            }
            Text(result)
        }
        .onAppear { affiliate = Tributary.attributedAffiliateId() ?? "none" }
    }

    private func show(_ isAccepted: Bool) {
        result = "\(isAccepted)"
        affiliate = Tributary.attributedAffiliateId() ?? "none"
    }
}
