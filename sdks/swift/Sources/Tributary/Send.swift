import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A body of the service: an attribution or a problem document.
struct AnswerBody: Sendable {
    /// Whether there is the field `attributionId`, a text or null.
    let isAttribution: Bool
    let attributionId: String?
    let affiliateId: String?
    let touch: String?
    let code: String?
    /// The fields that a 400 names.
    let errorPaths: [String]

    init(_ data: Data) {
        let fields = (try? JSONSerialization.jsonObject(with: data)) as? [String: Any] ?? [:]
        attributionId = fields["attributionId"] as? String
        isAttribution = attributionId != nil || fields["attributionId"] is NSNull
        affiliateId = fields["affiliateId"] as? String
        touch = fields["touch"] as? String
        code = fields["code"] as? String
        let errors = fields["errors"] as? [Any] ?? []
        errorPaths = errors.compactMap { ($0 as? [String: Any])?["path"] as? String }
    }
}

/// The service took the request, or refused it for good.
struct Verdict: Sendable {
    let isSuccess: Bool
    let status: Int
    let body: AnswerBody
    /// By how much the device's clock is behind the service, ms. 0 if that is little or unknown.
    let clockErrorMs: Int

    /// Nil if there is no attribution.
    var attributionId: String? { isSuccess ? body.attributionId : nil }

    /// Returns whether the service refused the request because of this field: the 400 names it.
    func isRefused(_ field: String) -> Bool {
        status == 400 && body.errorPaths.contains(field)
    }

    /// Returns the clock error if it may be why the service refused this field. Otherwise 0.
    func clockError(of field: String) -> Int {
        isRefused(field) ? clockErrorMs : 0
    }
}

/// What an answer means for the request.
enum Answer: Sendable {
    case verdict(Verdict)
    /// The service says that the key or the path is wrong: nothing can be delivered.
    case misconfigured(status: Int, code: String)
    /// No answer of the service. `afterMs` is what `Retry-After` says, else 0. `isStrange`: the host may be wrong.
    /// `status` is nil if no response came.
    case failed(reason: String, status: Int?, code: String?, afterMs: Int, isStrange: Bool)
}

private let requestTimeoutMs = 10_000
private let clockToleranceMs = 60_000
private let unattributed = ["no_attributable_click", "no_attribution"]
private let badSignature = ["signature_required", "invalid_signature"]

/// What the SDK sends. Fields without a value are left out.
struct RequestBody: Encodable, Sendable {
    let deviceId: String
    let sdk: String
    var acceptUnattributed = true
    var firstOpenAt: Int?
    var claimToken: String?
    var affiliateCode: String?
    var codeEnteredAt: Int?
    var deferred: Bool?
    var customerUserId: String?
    var identifiedAt: Int?
    var signature: String?
}

/// Sends one request. The completion is called once, on any thread, also if the request is cancelled.
func send(
    _ body: RequestBody, to url: URL, apiKey: String, on platform: Platform,
    completion: @escaping @Sendable (Answer) -> Void
) -> Cancel {
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    request.setValue("Bearer \(apiKey)", forHTTPHeaderField: "Authorization")
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.httpShouldHandleCookies = false
    request.httpBody = try? JSONEncoder().encode(body)

    let cancelTimeout = Locked<Cancel?>(nil)
    let cancel = platform.fetch(request) { result in
        cancelTimeout.withLock { $0 }?()
        switch result {
        case .success(let response): completion(classify(response, now: platform.now()))
        case .failure(let error): completion(.failed(reason: error.localizedDescription, status: nil, code: nil, afterMs: 0, isStrange: false))
        }
    }
    let timeout = platform.after(requestTimeoutMs, cancel)
    cancelTimeout.withLock { $0 = timeout }
    return cancel
}

private func classify(_ response: Response, now: Int) -> Answer {
    let body = AnswerBody(response.body)
    let status = response.status
    let code = body.code ?? ""
    let isSuccess = status == 200 && body.isAttribution
    let isRefusal =
        [400, 409, 413, 422].contains(status) || (status == 404 && unattributed.contains(code))
        || ([401, 403].contains(status) && badSignature.contains(code))
    let date = response.date.flatMap(httpDate) ?? now
    if isSuccess || isRefusal {
        let error = date - now
        let clockErrorMs = status == 400 && abs(error) > clockToleranceMs ? error : 0
        return .verdict(Verdict(isSuccess: isSuccess, status: status, body: body, clockErrorMs: clockErrorMs))
    }
    let isStrange = [401, 403, 404].contains(status)
    // Only the service's own answers have a code. A proxy in front of it answers the same while the service is away.
    if isStrange, !code.isEmpty { return .misconfigured(status: status, code: code) }
    let afterMs = response.retryAfter.map { retryAfter($0, now: date) } ?? 0
    return .failed(
        reason: "status \(status)", status: status, code: body.code, afterMs: afterMs, isStrange: isStrange)
}

/// Returns the delay that `Retry-After` asks for in seconds or as a date, ms. `now` is the time of the answer.
private func retryAfter(_ value: String, now: Int) -> Int {
    let isNumber = !value.isEmpty && value.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    guard isNumber else { return min(max((httpDate(value) ?? now) - now, 0), oneDayMs) }
    // More digits than a number has mean more than a day.
    return Int(value).map { min($0, oneDayMs / 1000) * 1000 } ?? oneDayMs
}

/// Returns the instant of an HTTP date, epoch ms, or nil if the text is none.
private func httpDate(_ text: String) -> Int? {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss zzz"
    return formatter.date(from: text).map { Int($0.timeIntervalSince1970 * 1000) }
}
