import Foundation

private let maxCodeLength = 200

/// What a link passes on: the token of a click, the code of a link, or both.
struct Referral: Sendable {
    let claimToken: String?
    let code: String?

    /// Returns the referral with its valid parts, or nil if it has none.
    init?(claimToken: String?, code: String?) {
        let token = claimToken.flatMap(asClaimToken)
        let validCode = code.flatMap(asCode)
        if token == nil, validCode == nil { return nil }
        self.claimToken = token
        self.code = validCode
    }

    /// Returns the referral in the query of an address of any scheme, or nil if it has none. Reads `claim_token` and
    /// `via` only: `code` and `ref` belong to OAuth and to other programs.
    init?(address: String) {
        // Bytes, because a letter and a combining mark are one `Character`, which equals neither `=` nor `&`.
        let beforeFragment = address.utf8.prefix { $0 != UInt8(ascii: "#") }
        guard let mark = beforeFragment.firstIndex(of: UInt8(ascii: "?")) else { return nil }
        var values: [String: String] = [:]
        for pair in beforeFragment[mark...].dropFirst().split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(decoding: parts[0], as: UTF8.self)
            let encoded = parts.count == 1 ? "" : String(decoding: parts[1], as: UTF8.self)
            // A parameter with a malformed escape is not ours.
            guard values[name] == nil,
                let value = encoded.replacingOccurrences(of: "+", with: " ").removingPercentEncoding, !value.isEmpty
            else { continue }
            values[name] = value
        }
        self.init(claimToken: values["claim_token"], code: values["via"])
    }
}

/// Returns the claim token in lower case, or nil if the text is no UUID.
private func asClaimToken(_ text: String) -> String? {
    UUID(uuidString: text)?.uuidString.lowercased()
}

/// Returns the code without surrounding spaces, or nil if no code has this form.
private func asCode(_ text: String) -> String? {
    let code = text.trimmingCharacters(in: .whitespacesAndNewlines)
    let hasControlCharacter = code.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }
    return code.isEmpty || code.utf16.count > maxCodeLength || hasControlCharacter ? nil : code
}
