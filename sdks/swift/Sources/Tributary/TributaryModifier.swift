#if canImport(SwiftUI)
    import SwiftUI

    extension View {
        /// Starts the SDK when the view appears, and passes on the links that open the app. Apply it to the root view of a
        /// window.
        public func tributary(apiKey: String? = nil, options: TributaryOptions = .init()) -> some View {
            onAppear { Tributary.start(apiKey: apiKey, options: options) }
                .onOpenURL { url in Tributary.attribute(url: url) }
                .onContinueUserActivity("NSUserActivityTypeBrowsingWeb") { activity in
                    if let url = activity.webpageURL { Tributary.attribute(url: url) }
                }
        }
    }
#endif
