import { type Guard, guards } from './guard.ts'

export const IDEMPOTENCY: readonly Guard[] = [
  {
    file: 'src/refunds/request-schema.ts',
    text: "!Object.hasOwn(metadata, '__proto__')) return",
    mutation: "!Object.hasOwn(metadata, '')) return",
    test: 'test/api/refunds/request/metadata.test.ts',
    claim: 'at its limits the name __proto__ is refused, with the name of the field',
    control: 'at its limits a nested object is refused, with the name of the field',
  },
  ...guards({ file: 'src/refunds/idempotency.ts' }, [
    {
      text: ".join('\\0'))",
      mutation: ".join(''))",
      test: 'test/plays/evidence/lost-rows.test.ts',
      claim: 'the request id of a refund follows from merchant and key, as in the known answer',
      control:
        'a refund whose row is lost after it was sent of which only the attempt is lost is refused as repeated, and that fails nothing',
    },
    {
      text: "if (checked === 'same') return",
      mutation: "if (checked !== 'unknown') return",
      test: 'test/api/refunds/request/idempotency.test.ts',
      claim: "the same key again with another receiver's number is refused",
      control: 'the same key again is case-sensitive',
    },
    {
      text: "text : quoted.replace(/\\\\([\"\\\\])/g, '$1')",
      mutation: 'text : text',
      test: 'test/api/refunds/request/idempotency.test.ts',
      claim:
        'the same key again is the same with and without the quotes of a structured-field string',
      control: 'the same key again is case-sensitive',
    },
    {
      text: "params.paymentId : ['surplus', params.transactionId]",
      mutation: 'params.paymentId : params.transactionId',
      test: 'test/unit/refunds/request/idempotency.test.ts',
      claim:
        'what an idempotency key stands for is another request for the surplus of a transaction than for a payment of the same id',
      control:
        'what an idempotency key stands for is the same request, however its amount is written',
    },
  ]),
  {
    file: 'src/refunds/request.ts',
    text: 'if (!isNew || !isRefusal(error)) throw error',
    mutation: 'if (isNew || !isRefusal(error)) throw error',
    test: 'test/races/refund-requests.test.ts',
    claim:
      'a request that meets a concurrent one between its steps that stored its key on another payment is found by the constraint on the key',
    control:
      'a request that meets a concurrent one between its steps sums in a statement of its own after the wait: it sees what was reserved meanwhile',
  },
  {
    file: 'src/refunds/idempotency.ts',
    text: 'onBehalfOf === undefined ? [] : [onBehalfOf]',
    mutation: 'onBehalfOf === undefined ? [] : []',
    test: 'test/unit/refunds/request/idempotency.test.ts',
    claim:
      'what an idempotency key stands for is another request on behalf of another person, or of nobody',
    control:
      'what an idempotency key stands for is the same request, however its amount is written',
  },
  {
    file: 'src/refunds/request-facts.ts',
    text: 'where 0 = (select count(*) from (',
    mutation: 'where 0 <= (select count(*) from (',
    test: 'test/races/refund-requests.test.ts',
    claim:
      'a request that meets a concurrent one between its steps waits for nothing if it is a repeated one',
    control:
      'a request that meets a concurrent one between its steps waits for the transaction without holding the payment',
  },
  {
    file: 'src/refunds/store-refund.ts',
    text: '  members.sort(([a], [b]) => a.length - b.length || a.compare(b))\n',
    mutation: '  members.sort(() => 0)\n',
    test: 'test/api/refunds/request/metadata.test.ts',
    claim:
      'under the same key the replay is the first answer to the letter, in whatever order the pairs were sent',
    control: 'under the same key the same pairs in another order replay the refund',
  },
]
