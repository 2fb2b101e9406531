/** What came of the rows of a bulk call: those that were made, and those that were refused with their index. */
export function presentBulk<Made extends object, Refusal extends string, Row>(
  outcomes: readonly (Made | Refusal)[],
  present: (made: Made) => Row,
  messages: Readonly<Record<Refusal, string>>,
): { created: Row[]; failed: { index: number; code: Refusal; message: string }[] } {
  const created: Row[] = [];
  const failed: { index: number; code: Refusal; message: string }[] = [];
  outcomes.forEach((outcome, index) => {
    if (typeof outcome === 'string') failed.push({ index, code: outcome, message: messages[outcome] });
    else created.push(present(outcome));
  });
  return { created, failed };
}
