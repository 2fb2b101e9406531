package dev.tributary

import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test
import java.util.concurrent.CompletableFuture
import java.util.concurrent.TimeUnit

class LinkPurchasesTest {
    private val clock = TestClock(0)
    private val sdk = TributarySdk(TestPlatform(Platform(), clock, 0.0, { "id" }))
    private val received = ArrayList<String>()

    private fun billing(name: String, maxCodeLength: Int = 64): BillingSdk = BillingSdk(
        name,
        { userId, done ->
            received.add("$name $userId")
            done(true)
        },
        { attribute, value -> received.add("$name $attribute=$value") },
        maxCodeLength,
    )

    private fun link(sdks: List<BillingSdk>, code: String? = null, userId: String = "u"): CompletableFuture<LinkResult> =
        CompletableFuture<LinkResult>().also { future -> sdk.linkPurchases(userId, sdks, code) { future.complete(it) } }

    private fun CompletableFuture<LinkResult>.result(): LinkResult = get(10, TimeUnit.SECONDS)

    @Test
    fun `every billing SDK gets the user id, and then the code`() {
        val result = link(listOf(billing("one"), billing("two")), "SPRING").result()
        assertEquals(listOf("one u", "one tributary_code=SPRING", "two u", "two tributary_code=SPRING"), received)
        assertEquals(listOf("one", "two"), result.userId)
        assertEquals(listOf("one", "two"), result.code)
    }

    @Test
    fun `a billing SDK that fails does not stop the others, and gets no code`() {
        val throwing = BillingSdk("throwing", { _, _ -> error("not configured") }, { _, _ -> received.add("wrong") })
        val refusing = BillingSdk("refusing", { _, done -> done(false) }, { _, _ -> received.add("wrong") })
        val half = BillingSdk("half", { _, done -> done(true) }, { _, _ -> error("no attributes") })
        val result = link(listOf(throwing, refusing, half, billing("last")), "SPRING").result()
        assertEquals(listOf("half", "last"), result.userId)
        assertEquals(listOf("last"), result.code)
        assertEquals(listOf("last u", "last tributary_code=SPRING"), received)
    }

    @Test
    fun `a code that may be an address or a name, or is too long, is not passed on`() {
        val codes = listOf("", "u@x.test", "Ann Lee", "a\u00a0b", "a\tb", "a\u0000b", "x".repeat(65))
        for (code in codes) assertEquals(code, emptyList<String>(), link(listOf(billing("one")), code).result().code)
        assertEquals(List(codes.size) { "one u" }, received)
        assertEquals(listOf("one"), link(listOf(billing("one")), "x".repeat(64)).result().code)
        val short = listOf(billing("one"), billing("short", 50))
        assertEquals(listOf("one"), link(short, "x".repeat(51)).result().code)
        assertEquals(listOf("one", "short"), link(short, "x".repeat(50)).result().code)
    }

    @Test
    fun `a user id that no provider reports is passed on to nobody`() {
        for (userId in listOf("", "x".repeat(513)))
            assertTrue(link(listOf(billing("one")), "SPRING", userId).result().userId.isEmpty())
        assertTrue(link(emptyList()).result().userId.isEmpty())
        assertTrue(received.isEmpty())
    }

    @Test
    fun `a billing SDK that does not answer delays the result by ten seconds`() {
        val silent = BillingSdk("silent", { _, _ -> }, { _, _ -> })
        val linked = link(listOf(silent, billing("one")))
        clock.tick(9_999)
        assertTrue(!linked.isDone)
        clock.tick(1)
        assertEquals(listOf("one"), linked.result().userId)
    }

    @Test
    fun `a code that is late does not reach the user of the next call`() {
        var answerFirst = { }
        val slow = BillingSdk(
            "slow",
            { userId, done -> if (userId == "first") answerFirst = { done(true) } else done(true) },
            { _, value -> received.add(value) },
        )
        val first = link(listOf(slow), "ONE", "first")
        val second = link(listOf(slow), "TWO", "second")
        answerFirst()
        answerFirst()
        assertEquals(listOf("TWO"), received)
        assertTrue(first.result().code.isEmpty())
        assertEquals(listOf("slow"), second.result().code)
    }
}
