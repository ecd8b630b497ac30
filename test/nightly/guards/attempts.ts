import { type Guard, guards } from './guard.ts'

export const ATTEMPTS: readonly Guard[] = [
  {
    file: 'src/refunds/answer.ts',
    text: "outcome.kind === 'answered' && isDecidedFailed(draft.now)",
    mutation: "outcome.kind === 'answered' && isDecidedFailed(draft.now) && isLost",
    test: 'test/plays/review/in-flight.test.ts',
    claim:
      'an answer that arrives after a decision of failed, after the lease has ended, accepts it: a person is asked again',
    control:
      'between the claim of a transaction and its commit a refund decided as failed is not sent again by the commit',
  },
  {
    file: 'src/refunds/answer.ts',
    text: 'if (ended && isUnsent(draft.now) && (await isNotified(tx, draft.now))) stop',
    mutation: 'if (ended?.isLost && isUnsent(draft.now) && (await isNotified(tx, draft.now))) stop',
    test: 'test/plays/evidence/notified-meanwhile.test.ts',
    claim:
      'an attempt that wrote no byte, whose lease ended is not followed by another once another amount was notified',
    control:
      'an attempt that wrote no byte, whose lease ended is followed by another where nothing was notified',
  },
  {
    file: 'src/refunds/lifecycle.ts',
    text: 'if (!from.includes(status)) {',
    mutation: 'if (from.length === 0) {',
    test: 'test/unit/refunds/moves.test.ts',
    claim:
      'each move in each status is made where a rule admits it, and otherwise leaves the refund to a person',
    control: 'each event in each status success notified',
  },
  {
    file: 'src/refunds/save.ts',
    text: '  if (missing) {',
    mutation: '  if (missing && now.attempts < 0) {',
    test: 'test/api/discrepancies/discrepancies.test.ts',
    claim: 'a decision that no rule admits is not made',
    control: 'a discrepancy refund_rule_missing',
  },
  ...guards({ file: 'src/refunds/answer.ts' }, [
    {
      text: '  else applyEarlier(draft, sent)',
      mutation: '  else if (isLost) applyEarlier(draft, sent)',
      test: 'test/plays/attempt/lease.test.ts',
      claim:
        'a worker that lost its lease and whose refund another worker sent again meanwhile: code 0 to the first attempt accepts it',
      control:
        'a lease that would end before the call is too short to send: no attempt is recorded, and the refund waits',
    },
    {
      text: 'isUnsent(draft.now) && (await isNotified(tx, draft.now))',
      mutation:
        'isUnsent(draft.now) && !draft.now.failureCode && (await isNotified(tx, draft.now))',
      test: 'test/plays/attempt/lease.test.ts',
      claim:
        'a worker that lost its lease and had written no byte, while a failure was notified: somebody else sent it, so a person decides',
      control:
        'a lease that would end before the call is too short to send: no attempt is recorded, and the refund waits',
    },
    {
      text: "move(draft, 'unanswered', cause, { unanswered: true })",
      mutation: "move(draft, 'unanswered', cause, { unanswered: false })",
      test: 'test/plays/transitions-played.test.ts',
      claim: 'a refund without an answer after reset is sent again only later, under the same id',
      control: 'before sending a payment that has failed since fails the refund',
    },
    {
      text: "move(draft, 'unanswered', { reason }, { unanswered: true })",
      mutation: "move(draft, 'not_written', { reason }, { unanswered: true })",
      test: 'test/plays/attempt/lease.test.ts',
      claim:
        'a worker that lost its lease during the refund call still writes its answer; the next one found the attempt interrupted',
      control:
        'a lease that would end before the call is too short to send: no attempt is recorded, and the refund waits',
    },
    {
      text: "outcome is null or (outcome = 'unknown' and message = ${INTERRUPTED}) as open",
      mutation: 'outcome is null and message is distinct from ${INTERRUPTED} as open',
      test: 'test/plays/evidence/answers.test.ts',
      claim: 'the answer to a refund without a byte written gives the refund back, also late',
      control:
        'the answer to a refund is written with its attempt, whose record was lost in a failover, but not the lease',
    },
    {
      text: "const isUndone = status === 'failed' || status === 'awaiting_approval'",
      mutation: "const isUndone = status === 'awaiting_approval'",
      test: 'test/plays/approval/evidence.test.ts',
      claim:
        'an approved refund whose approval is lost in a failover after it was sent goes to a person also when it was declined since',
      control:
        'an approved refund whose approval is lost in a failover after it was sent awaits approval again when no byte was written',
    },
  ]),
  {
    file: 'src/refunds/choose.ts',
    text: "if (payment.status !== 'SUCCESS' || payment.missing) {",
    mutation: 'if (payment.missing) {',
    test: 'test/plays/transitions-played.test.ts',
    claim: 'before sending a payment that has failed since fails the refund',
    control: 'an accepted refund that does not end stays accepted, and is a disagreement once',
  },
  ...guards({ file: 'src/refunds/measure.ts', test: 'test/plays/sequences.test.ts' }, [
    {
      text: '[...own.filter(isCounted), ...external]',
      mutation:
        "[...own.filter(isCounted), ...external.filter(({ matched, id }) => matched || id === '')]",
      claim:
        'a portal refund between request and send whose delta lags behind its notification counts all the same',
      control: 'a delta that is gone after a notified success frees nothing',
    },
    {
      text: "return one.status !== 'failed' && !isFreed(one) && !one.inFirstSight",
      mutation:
        "return one.status !== 'accepted' && one.status !== 'failed' && !isFreed(one) && !one.inFirstSight",
      claim:
        'a portal refund between request and send that leaves too little beside one that was accepted, and is not settled yet, fails ours',
      control:
        'a portal refund between request and send that leaves too little fails ours by our own check, and nothing is sent',
    },
  ]),
  ...guards({ file: 'src/refunds/choose.ts', test: 'test/plays/transitions-played.test.ts' }, [
    {
      text: "if (payment.paymentMethod === 'QR' && receiver === null && attempts === 0) {",
      mutation: "if (payment.paymentMethod === 'QR' && receiver === null && attempts < 0) {",
      claim:
        'before sending a payment by "CC" that turns out to be made by QR fails the refund without a receiver',
      control: 'before sending a payment that has failed since fails the refund',
    },
    {
      text: 'const isPaymentGone = obstacle?.reason === GONE',
      mutation: 'const isPaymentGone = obstacle !== undefined && obstacle.left === undefined',
      claim:
        'before sending one that needs a receiver now waits while growth of the payment may be its own',
      control: 'before sending a payment that has failed since fails the refund',
    },
  ]),
  {
    file: 'src/refunds/choose.ts',
    text: 'if (!payment.listed && !payment.missing) continue',
    mutation: "if (!payment.listed && !payment.missing && payment.status === '') continue",
    test: 'test/plays/evidence/smaller.test.ts',
    claim:
      'an answer that no longer lists the payment once lets its refund wait, which is sent when the payment is back',
    control:
      'notifications of a transaction that is due already do not keep others from being requeued',
  },
  {
    file: 'src/refunds/attempt.ts',
    text: 'if (isFirst && surplus && !(await',
    mutation: 'if (isFirst && surplus && attempts > 0 && !(await',
    test: 'test/plays/surplus/send-surplus.test.ts',
    claim:
      'before a surplus refund is sent a success of the other transaction that is withdrawn makes it fail',
    control: 'at the same time copies of one request are one refund',
  },
  ...guards({ file: 'src/refunds/choose.ts' }, [
    {
      text: 'const fits = showsNothing(payment, own, unknown) &&',
      mutation: 'const fits = (showsNothing(payment, own, unknown) || unknown.now.unanswered) &&',
      test: 'test/plays/transitions-played.test.ts',
      claim: 'a refund without an answer is not sent again beside an unmatched delta',
      control: 'before sending a payment that has failed since fails the refund',
    },
    {
      text: 'if (!settings.REFUNDS_ENABLED && attempts === 0) continue',
      mutation: 'if (!settings.REFUNDS_ENABLED && attempts < 0) continue',
      test: 'test/plays/transitions-played.test.ts',
      claim:
        'with refunds disabled no refund without a recorded attempt is sent, and those in progress are resolved',
      control: 'before sending a payment that has failed since fails the refund',
    },
    {
      text: 'if (!requestedBeforeSnapshot) continue',
      mutation: 'if (!requestedBeforeSnapshot && attempts > 0) continue',
      test: 'test/plays/attacks.test.ts',
      claim: "a refund requested while a query is in flight is not sent on that query's answer",
      control:
        'a verified notification that neither the intake nor the sync could assign is requeued by maintenance',
    },
    {
      text: 'if (mayBeItsOwn && !isPaymentGone) {',
      mutation: 'if (mayBeItsOwn && !isPaymentGone && attempts > 0) {',
      test: 'test/plays/evidence/lost-rows.test.ts',
      claim:
        'a refund whose row is lost after it was sent that shows as unexplained growth of its amount is not sent again',
      control:
        'a refund whose row is lost after it was sent of which only the attempt is lost is refused as repeated, and that fails nothing',
    },
    {
      text: '    if (!obstacle) {\n',
      mutation: '    if (!obstacle || obstacle.left !== undefined) {\n',
      test: 'test/plays/sequences.test.ts',
      claim:
        'a portal refund between request and send that leaves too little fails ours by our own check, and nothing is sent',
      control: 'a delta that is gone after a notified success frees nothing',
    },
    {
      text: 'if (mayHaveMoved === undefined) {',
      mutation: 'if (mayHaveMoved === undefined || callId > 0) {',
      test: 'test/plays/evidence/moved-twice.test.ts',
      claim:
        'a refund that a restored database knows as never sent (c) and whose payment has failed is left to a person while growth may be its own',
      control: 'a request id in upper case (l) is that of the refund: its success ends it',
    },
    {
      text: "if (measureUnexplained(payment, own) !== '0') return false",
      mutation: "if (measureUnexplained(payment, own).startsWith('-')) return false",
      test: 'test/plays/transitions-played.test.ts',
      claim: 'a refund without an answer is not sent again beside an unmatched delta',
      control: 'before sending a payment that has failed since fails the refund',
    },
  ]),
  {
    file: 'src/refunds/attempt.ts',
    text: "+ ${config.GATEWAY_TIMEOUT_MS} * interval '1 millisecond'",
    mutation: "+ ${config.GATEWAY_TIMEOUT_MS} * interval '0 milliseconds'",
    test: 'test/plays/attempt/lease.test.ts',
    claim:
      'a lease that would end before the call is too short to send: no attempt is recorded, and the refund waits',
    control:
      'every request sent was recorded and committed first, with the bytes that the gateway received',
  },
  {
    file: 'src/refunds/attempt.ts',
    text: 'and ${tx.unsafe(NOT_HELD_SQL)}',
    mutation: 'and (${tx.unsafe(NOT_HELD_SQL)} or true)',
    test: 'test/api/holds/holds.test.ts',
    claim: 'a hold on the refund set during the query is seen by its commit',
    control: 'a hold on another account is not shown on this one',
  },
  {
    file: 'src/refunds/choose.ts',
    text: '  if (unknown) {\n',
    mutation: 'if (unknown && unknown.now.attempts > 1) {',
    test: 'test/plays/sequences.test.ts',
    claim:
      'one send of a payment at a time the second waits while the first is unknown, and is sent as soon as that is resolved',
    control:
      'a portal refund between request and send that leaves too little fails ours by our own check, and nothing is sent',
  },
  {
    file: 'src/refunds/choose.ts',
    text: 'if (!payment.missing && (payment.countedRefunded !== null || isReturnSeen)) continue',
    mutation: "if (!payment.missing && (payment.countedRefunded === '' || isReturnSeen)) continue",
    test: 'test/plays/evidence/stale-answers.test.ts',
    claim:
      'an answer from a stale replica has no refund sent for the first time: growth could not be measured from it',
    control:
      'what was notified of a request id in mixed case is found after its notification is deleted',
  },
  ...guards({ test: 'test/plays/evidence/stale-answers.test.ts' }, [
    {
      file: 'src/refunds/deadlines.ts',
      text: "draft.now.status === 'unknown' && measureGrown(draft.now, snapshot).lt(0)",
      mutation: "draft.now.status === 'sending' && measureGrown(draft.now, snapshot).lt(0)",
      claim:
        'an answer from a stale replica hides the growth of a refund that was sent before it: neither failed nor sent again',
      control:
        'what was notified of a request id in mixed case is found after its notification is deleted',
    },
    {
      file: 'src/refunds/match.ts',
      text: '  if (countedRefunded !== null) return\n  for (const draft of drafts) {\n    const { refundedBefore }',
      mutation:
        "  if (countedRefunded === '') return\n  for (const draft of drafts) {\n    const { refundedBefore }",
      claim:
        'an answer from a stale replica leaves growth from before a refund was sent to others: it is neither inferred nor matched',
      control:
        'what was notified of a request id in mixed case is found after its notification is deleted',
    },
    {
      file: 'src/refunds/choose.ts',
      text: 'if (!payment.missing && (',
      mutation: 'if (payment.paymentId && (',
      claim:
        'an answer from a stale replica keeps no refund waiting whose payment is gone since: a person decides',
      control:
        'what was notified of a request id in mixed case is found after its notification is deleted',
    },
  ]),
  {
    file: 'src/refunds/attempt.ts',
    text: 'if (permit.isInTime()) {',
    mutation: 'if (permit.isInTime() || true) {',
    test: 'test/plays/attempt/lease.test.ts',
    claim:
      'a lease that would end before the call is not used by a worker that stalled after it had recorded the attempt: no byte leaves',
    control:
      'every request sent was recorded and committed first, with the bytes that the gateway received',
  },
  {
    file: 'src/sync/record-refund-answer.ts',
    text: 'isDatabaseUnavailable(error) || isTransient(error)',
    mutation: 'isDatabaseUnavailable(error) && isTransient(error)',
    test: 'test/plays/evidence/answers.test.ts',
    claim:
      'the answer to a refund is kept while the database refuses it, and written when it is back',
    control: 'the answer to a refund without a byte written gives the refund back, also late',
  },
  {
    file: 'src/platform/postgres/errors.ts',
    text: 'could not (receive data|commit transaction)',
    mutation: 'could not receive data',
    test: 'test/unit/platform/postgres/errors.test.ts',
    claim:
      'an internal error "could not commit transaction for shard 102008 on at least one active node" says that the database is out of reach: true',
    control:
      'an internal error "SSL SYSCALL error: EOF detected" says that the database is out of reach: true',
  },
  {
    file: 'src/platform/concurrency/timing.ts',
    text: 'Math.min(monotonicEnd - performance.now(), end - Date.now())',
    mutation: 'Math.min(monotonicEnd - performance.now(), end - monotonicEnd + 1e15)',
    test: 'test/unit/platform/concurrency/backoff.test.ts',
    claim: 'a time that passes while the machine is paused is counted by the other clock',
    control: 'a time runs by the monotonic clock where the other one is set back',
  },
]
