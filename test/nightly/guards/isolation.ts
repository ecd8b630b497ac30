import { type Guard, guards } from './guard.ts'

export const ISOLATION: readonly Guard[] = [
  ...guards({ test: 'test/api/every-route.test.ts' }, [
    {
      file: 'src/discrepancies/routes.ts',
      text: "  ...withScope('ops'),",
      mutation: "  ...withScope('payments:read'),",
      claim: 'GET /v1/discrepancies is refused to a key that has every scope but its own',
      control: 'GET /v1/search refuses a parameter that it does not know, by its name',
    },
    {
      file: 'src/payments/find-payments.ts',
      text: '  const keys = merchants.map((merchantCode) => ({ merchantCode, paymentId }))',
      mutation:
        "  const keys = ['UFLIYL', 'OTHER1', 'A', 'B', ...merchants].map((merchantCode) => ({ merchantCode, paymentId }))",
      claim: 'GET /v1/payments/:paymentId a key for one account finds nothing of the other',
      control: 'GET /v1/search refuses a parameter that it does not know, by its name',
    },
    {
      file: 'src/payments/routes.ts',
      text: "...withScope('payments:read') }",
      mutation: "...withScope('cards:read') }",
      claim: 'GET /v1/payments is refused to a key that has every scope but its own',
      control: 'GET /v1/search refuses a parameter that it does not know, by its name',
    },
  ]),
  {
    file: 'src/decisions/unit-of-work.ts',
    text: 'where merchant_code = ${merchantCode} and transaction_id = ${transactionId} for update`',
    mutation: 'where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`',
    test: 'test/plays/review/decisions.test.ts',
    claim: 'a decision locks the transaction before its payment, in the order of a commit',
    control:
      'two decisions at once failed and succeeded: one wins, the other learns what was decided',
  },
  {
    file: 'src/refunds/order-surplus.ts',
    text: 'limit 1 for update) as t`',
    mutation: 'limit 1) as t`',
    test: 'test/api/review/discrepancies.test.ts',
    claim: 'the resolution of a discrepancy by two people at once is done once',
    control: 'the resolution of a discrepancy a second time is 409, with what was decided',
  },
  {
    file: 'src/discrepancies/store.ts',
    text: '        where d.id = ${id} and d.merchant_code = any(${[...merchants]}::text[])`',
    mutation: '        where d.id = ${id} and ${merchants.length > 0}`',
    test: 'test/api/every-route.test.ts',
    claim: 'POST /v1/discrepancies/:id/note a key for one account finds nothing of the other',
    control: 'GET /v1/search refuses a parameter that it does not know, by its name',
  },
  {
    file: 'src/decisions/routes.ts',
    text: "...{ ...of, method: 'post', tag: 'Discrepancies' }",
    mutation: "...{ ...of, method: 'post', tag: 'Discrepancies', scope: 'payments:read' }",
    test: 'test/api/every-route.test.ts',
    claim: 'POST /v1/discrepancies/:id/note is refused to a key that has every scope but its own',
    control: 'GET /v1/search refuses a parameter that it does not know, by its name',
  },
  ...guards({ file: 'src/search.ts', test: 'test/api/search/search.test.ts' }, [
    {
      text: '      from ${table} where merchant_code = account and ${name} >= ${from} ${until}',
      mutation: "      from ${table} where account <> '' and ${name} >= ${from} ${until}",
      claim: 'nobody finds objects of another account',
      control: 'nobody finds a transaction that the gateway does not know yet',
    },
    {
      text: "type !== 'refund' || withRefunds",
      mutation: "type !== 'refund' || withRefunds || text !== ''",
      claim: 'nobody finds refunds without refunds:read',
      control: 'nobody finds objects of another account',
    },
    {
      text: "  ...withScope('payments:read'),",
      mutation: "  ...{ ...withScope('payments:read'), middleware: [] },",
      claim: 'nobody finds anything without a text, a scope or a key',
      control: 'an object is found by an order id, the exact one first',
    },
  ]),
  {
    file: 'src/errors.ts',
    text: '  if (second === undefined) return first',
    mutation: "  if (second === undefined || id !== '') return first",
    test: 'test/api/every-route.test.ts',
    claim:
      'GET /v1/transactions/:transactionId a key for all accounts must name one if both may have the id',
    control: 'GET /v1/search refuses a parameter that it does not know, by its name',
  },
  {
    file: 'src/transactions/request-sync.ts',
    text: '    if (known[0]?.unconfirmed !== false) await requireRoom(tx, access, merchantCode)\n',
    mutation: "    if (merchantCode === '') await requireRoom(tx, access, merchantCode)\n",
    test: 'test/api/sync/unconfirmed-share.test.ts',
    claim:
      'a key has a bounded number of unknown ids waiting; what is known and other keys are not refused',
    control:
      'unknown ids are claimed after all others, however long they have been due, but one is always under way',
  },
  {
    file: 'src/transactions/routes.ts',
    text: "...withScope('payments:read') }",
    mutation: "...withScope('cards:read') }",
    test: 'test/api/every-route.test.ts',
    claim: 'GET /v1/transactions is refused to a key that has every scope but its own',
    control: 'GET /v1/search refuses a parameter that it does not know, by its name',
  },
  {
    file: 'src/transactions/timeline.ts',
    text: '    where ${withRefunds} or not ${sql.unsafe(NAMES_REFUND_SQL)}\n',
    mutation: '    where ${withRefunds} or ${sql.unsafe(NAMES_REFUND_SQL)} or true\n',
    test: 'test/api/discrepancies/visibility.test.ts',
    claim: 'the timeline shows a reader without refunds:read what its kind allows',
    control: 'the timeline shows a reader with refunds:read what its kind allows',
  },
  {
    file: 'src/transactions/serve-reads.ts',
    text: "    if (!key?.scopes.includes('payments:read') || key.networks) return false",
    mutation: "    if (!key?.scopes.includes('payments:read')) return false",
    test: 'test/api/transactions/serve-reads.test.ts',
    claim: 'the framework serves a read with a key that is bound to networks',
    control: 'the plain read of a transaction that is there is answered as by the framework',
  },
]
