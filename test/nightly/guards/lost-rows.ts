import { type Guard, guards } from './guard.ts'

export const LOST_ROWS: readonly Guard[] = [
  ...guards({ file: 'src/refunds/request-rules.ts' }, [
    {
      text: 'evidence.every((one) => isSuccess(one)',
      mutation: 'evidence.some((one) => isSuccess(one)',
      test: 'test/api/refunds/request/prior-evidence.test.ts',
      claim:
        'a key that is repeated after its row was lost does not succeed beside a notification of its id that names no payment',
      control:
        'a key that is repeated after its row was lost does not succeed by an external refund that is released, also once the notifications are deleted',
    },
    {
      text: '[first, asked ?? first].every',
      mutation: '[first, asked && first].every',
      test: 'test/plays/evidence/lost-rows.test.ts',
      claim:
        'a refund whose row is lost after it was sent and notified as another amount is left to a person, unsent',
      control:
        'a refund whose row is lost after it was sent and whose request id is notified with another amount is not sent',
    },
    {
      text: "own).settles === 'success'",
      mutation: 'own).settles !== undefined',
      test: 'test/plays/evidence/lost-rows.test.ts',
      claim:
        'a refund whose row is lost after it was sent and notified as failed is left to a person, unsent',
      control: 'the request id of a refund follows from merchant and key, as in the known answer',
    },
  ]),
]
