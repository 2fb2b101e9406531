import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends requests with a session of its own: without cookies and cache, and without following redirects.
final class Transport: NSObject, URLSessionDataDelegate, Sendable {
    static let shared = Transport()

    private struct Exchange {
        let completion: @Sendable (Result<Response, any Error>) -> Void
        var body = Data()
    }

    private let exchanges = Locked<[Int: Exchange]>([:])
    private let session = Locked<URLSession?>(nil)

    /// Sends a request. The completion is called once, on any thread, also if the request is cancelled.
    func fetch(
        _ request: URLRequest, _ completion: @escaping @Sendable (Result<Response, any Error>) -> Void
    ) -> Cancel {
        let task = ownSession().dataTask(with: request)
        exchanges.withLock { $0[task.taskIdentifier] = Exchange(completion: completion) }
        task.resume()
        return { task.cancel() }
    }

    private func ownSession() -> URLSession {
        session.withLock { existing in
            if let existing { return existing }
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpShouldSetCookies = false
            configuration.httpCookieAcceptPolicy = .never
            configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
            configuration.urlCache = nil
            configuration.urlCredentialStorage = nil
            let created = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
            existing = created
            return created
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchanges.withLock { $0[dataTask.taskIdentifier]?.body.append(data) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let exchange = exchanges.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        guard error == nil, let response = task.response as? HTTPURLResponse else {
            return exchange.completion(.failure(error ?? URLError(.badServerResponse)))
        }
        exchange.completion(
            .success(
                Response(
                    status: response.statusCode,
                    date: response.value(forHTTPHeaderField: "Date"),
                    retryAfter: response.value(forHTTPHeaderField: "Retry-After"),
                    body: exchange.body)))
    }
}
