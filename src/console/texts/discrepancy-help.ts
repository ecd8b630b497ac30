import type { DiscrepancyKind } from '../../discrepancies/kinds.ts'

/** What a kind of discrepancy means for the money, and what to do about it. */
type Help = { meaning: string; steps: string }

/** For each kind of discrepancy, what it means and what to do next. */
export const discrepancyHelp = {
  unexplained_growth: {
    meaning:
      'The gateway reports that more of this payment was refunded than any refund known here. Refunds of the payment that were not sent yet wait.',
    steps:
      'Look in the gateway’s portal for a refund that was made there. Resolving this enters the increase as a refund made elsewhere.',
  },
  refunded_amount_fell: {
    meaning: 'Refunds that are known to have happened no longer show in the gateway’s figures.',
    steps:
      'Ask the gateway’s support where the money is. This ends by itself when the figures show the refunds again.',
  },
  success_after_failure: {
    meaning:
      'This refund was shown as failed, and then the gateway notified its success. It now counts as refunded.',
    steps:
      'Correct it wherever it was reported as failed, and check whether the customer was paid another way in the meantime.',
  },
  failure_after_success: {
    meaning: 'This refund was shown as succeeded, and then the gateway notified its failure.',
    steps: 'Ask the gateway’s support what happened, then open the refund and decide it.',
  },
  notification_mismatch: {
    meaning:
      'A correctly signed notification has the request id of a refund made here, with another payment or amount. Nothing of it was believed.',
    steps: 'Ask the gateway’s support which refund the notification is about.',
  },
  refund_without_end: {
    meaning: 'The gateway accepted this refund, and neither confirmed nor refused it since.',
    steps: 'Ask the gateway’s support about the request id, then open the refund and decide it.',
  },
  external_refund_unmatched: {
    meaning:
      'The gateway notified a refund that was made in its portal, and the refunded amount does not show it. The amount stays reserved.',
    steps:
      'Ask the gateway’s support whether it happened, or was part of what was refunded before the payment was first seen. Then decide below.',
  },
  external_refund_contradicted: {
    meaning:
      'The gateway notified both the success and the failure of a refund that was made in its portal. The amount stays reserved.',
    steps: 'Ask the gateway’s support whether the money moved. Then decide below.',
  },
  refund_rule_missing: {
    meaning:
      'Something happened to a refund that the rules of this service do not expect in its state. The amount stays reserved.',
    steps:
      'Decide the refund: the gateway knows whether the money moved. Report the line of the log to whoever maintains the service.',
  },
  decided_against_evidence: {
    meaning:
      'A person decided the outcome of a refund against a notification, the refunded amount or an earlier decision.',
    steps:
      'Check the decision with the person who made it. If it was right, resolve this with the reason.',
  },
  answer_went_backwards: {
    meaning:
      'The gateway took back a success, an amount or a refunded amount that it had reported before.',
    steps:
      'Stop the delivery of the goods, and ask the gateway’s support which of its answers is right.',
  },
  payment_unreadable: {
    meaning:
      'The gateway lists a payment with values that cannot be read. The payment cannot be refunded, and the transaction stays open.',
    steps:
      'Ask the gateway’s support what the entry means. Resolving this sets the entry aside until its text changes.',
  },
  amount_rounded: {
    meaning:
      'An amount was off a decimal of four places by less than a millionth, and was read as that decimal.',
    steps: 'Report it to the gateway’s support. No money is affected.',
  },
  order_conflict: {
    meaning:
      'Two correctly signed notifications name different orders, amounts or currencies for one transaction. The first one is shown.',
    steps:
      'Find the order by the transaction id that your shop stored, and compare amount and currency. Ship nothing on the order id alone.',
  },
  amount_mismatch: {
    meaning: 'What was paid is not the amount of the order.',
    steps:
      'Underpaid: do not ship, or ask the customer for the rest. Overpaid: refund what is too much. You can also accept it, and resolve this with the reason.',
  },
  currency_changed: {
    meaning:
      'A correctly signed notification names another currency than an earlier one. The first one is shown.',
    steps: 'Ask the gateway’s support which one is right, and refund nothing before.',
  },
  payment_elsewhere: {
    meaning:
      'The gateway lists a payment under two transactions. It stays with the one it was stored under.',
    steps: 'Ask the gateway’s support which one it belongs to.',
  },
  payment_moved: {
    meaning:
      'This transaction lost a payment: the gateway lists it under another transaction. The order may have been shipped because this one was paid.',
    steps:
      'Check with the shop what was delivered for which order, and ask the gateway’s support which transaction was paid. Then resolve this with the reason.',
  },
  payment_missing: {
    meaning:
      'The gateway listed a payment before, and no longer does. It cannot be refunded meanwhile.',
    steps:
      'Ask the gateway’s support where the payment is. This ends by itself when it is listed again.',
  },
  order_paid_twice: {
    meaning:
      'More than one transaction of the order is paid, and together they exceed its amount, or that amount is not clear.',
    steps: 'Ask the customer, then open the transaction and refund the surplus.',
  },
  duplicate_payment: {
    meaning:
      'More than one payment of this transaction succeeded, and together they exceed the amount of the order, or that amount is not known.',
    steps: 'Open the transaction and refund the surplus.',
  },
  ipn_contradicts_query: {
    meaning:
      'A correctly signed notification reports another result than the gateway’s answer when asked. The answer counts.',
    steps: 'Report both to the gateway’s support.',
  },
  account_missing: {
    meaning:
      'This merchant account is no longer in the settings, and has refunds or queries that have not ended. Nothing of it is asked or sent.',
    steps:
      'Ask the people who run the service to configure the account again; or cancel or decide its refunds.',
  },
  ipn_missing: {
    meaning: 'The payment was found by asking the gateway. No notification of it ever came.',
    steps: 'Ask the people who run the service to check the address that the gateway notifies.',
  },
} as const satisfies Record<DiscrepancyKind, Help>

/** For a kind that this release does not know. */
export const unknownHelp: Help = {
  meaning: 'Two sources disagree about this transaction.',
  steps: 'Compare both sides below, and ask the gateway’s support which one is right.',
}
