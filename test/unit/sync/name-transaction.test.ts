import { expect, it } from 'vitest'
import { completeNames } from '../../../src/sync/name-transaction.ts'

/** As `order reference currency amount`, `-` for what is missing. */
function describeNames(text: string, orderVerified: boolean) {
  const [orderId, merchantTxnId, currency, expectedAmount] = text
    .split(' ')
    .map((one) => (one === '-' ? null : one))
  const names = { orderId: orderId ?? null, merchantTxnId: merchantTxnId ?? null }
  const amounts = { currency: currency ?? null, expectedAmount: expectedAmount ?? null }
  return { ...names, ...amounts, orderVerified }
}

/** A mark before the names: `v` verified, `u` unverified, `o` a verified reading that is not trusted. */
function describeNotification(text: string, index: number) {
  const [mark, ...words] = text.split(' ')
  const { expectedAmount, orderVerified: _, ...names } = describeNames(words.join(' '), false)
  return {
    ...names,
    ...{ id: index, code: '0', amount: expectedAmount },
    ...{ isVerified: mark !== 'u', isOther: mark === 'o' },
  }
}

it.each<[string, string, string[], string | undefined]>([
  ['nothing is named by nothing', 'u - - - -', [], undefined],
  [
    'the first verified one, with all that it states',
    'u - - - -',
    ['v A - VND 5', 'v B M USD 6'],
    'v A M VND 5',
  ],
  [
    'a verified one replaces what did not verify, as a whole',
    'u X Y USD -',
    ['v A - - -'],
    'v A - - -',
  ],
  ['what is verified is not replaced', 'v A M VND 5', ['v B N USD 6'], undefined],
  ['what is missing of it is filled', 'v A - VND -', ['v B N USD 6'], 'v A N VND 6'],
  ['not by one that did not verify', 'v A - VND -', ['u B N USD 6'], undefined],
  ['nor by a reading that is not trusted', 'u - - - -', ['o A M VND 5'], undefined],
  [
    'one that did not verify names what nothing names, but no amount',
    'u - - - -',
    ['u A - VND 5', 'u B M USD 6'],
    'u A - VND -',
  ],
  ['and not what one of them named before', 'u A - - -', ['u B M USD 6'], undefined],
  ['zero is no amount of an order', 'u - - - -', ['v A - VND 0', 'v A - VND 5'], 'v A - VND 5'],
])('%s', (_, before, notified, after) => {
  const read = (text: string) => describeNames(text.slice(2), text.startsWith('v'))
  // Newest first, as they are read.
  const given = notified.map(describeNotification).toReversed()
  expect(completeNames(read(before), given)).toEqual(after === undefined ? undefined : read(after))
})
