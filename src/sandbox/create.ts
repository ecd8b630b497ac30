import { DEMO_ACCOUNT } from '../config/accounts.ts'
import { findMerchant } from './control/requests.ts'
import { ControlError, readInput } from './control-input.ts'
import { faultInput } from './faults.ts'
import { sendPaymentIpn } from './ipn.ts'
import { type JournalEntry, listEntries } from './journal.ts'
import { addTransaction, transactionInput } from './paygate/transactions.ts'
import { type SandboxOptions, startSandbox } from './start-sandbox.ts'
import type { SandboxState, SandboxTransaction } from './state.ts'
import type { Fault } from './types.ts'

/**
 * A payment to make. Amounts are decimal text or numbers. Defaults: method ATM, status SUCCESS,
 * generated ids, the first account.
 */
export type PaymentWish = {
  amount: string | number
  /** The order's amount, which the notification carries. Default: `amount`. */
  orderAmount?: string | number
  paymentMethod?: string
  status?: string
  currency?: string
  transactionId?: string
  paymentId?: string
  orderId?: string
  merchantCode?: string
  /** Sent in the notification. */
  payToken?: string
  /** The part of the amount that was paid, as its notification states it. */
  transAmount?: string | number
}

/** A fault to add. Without `times` it applies until the faults are cleared. */
export type FaultWish = {
  command: Fault['command']
  kind: Fault['kind']
  times?: number
  probability?: number
  /** Milliseconds, for kind `delay`. Default 1,000. */
  delayMs?: number
  code?: number
}

/** A running sandbox gateway, controlled by a test. */
export type TestSandbox = {
  /** The base URL of all paths, of the start page and of `/sandbox`. */
  url: string
  /** Sets the URL for subsequent notifications. */
  setIpnUrl(url: string): void
  /**
   * Makes a payment. If a notification URL is set, resolves after the first delivery attempt.
   * @throws Error naming the invalid member
   */
  makePayment(payment: PaymentWish): Promise<{ transactionId: string; paymentId: string }>
  /**
   * Adds a fault.
   * @throws Error naming the invalid member
   */
  addFault(fault: FaultWish): void
  /** Removes all faults. */
  clearFaults(): void
  /** Lists requests received and notifications sent, oldest first; of one command, or all. */
  listCalls(command?: string): JournalEntry[]
  /** Closes all connections; resolves when nothing runs any more. */
  stop(): Promise<void>
}

/**
 * Starts a gateway for tests, by default on a free port and with the demo's account. Its state is in
 * memory and not shared with other sandboxes.
 * @throws Error if it cannot listen on the port
 */
export async function createSandbox(options: Partial<SandboxOptions> = {}): Promise<TestSandbox> {
  const sandbox = await startSandbox({ accounts: [DEMO_ACCOUNT], ...options })
  const { state, url, setIpnUrl, stop } = sandbox
  return {
    url,
    setIpnUrl,
    stop,
    async makePayment(payment) {
      const transaction = withMemberName(() => addPayment(state, payment))
      await sendPaymentIpn(state, transaction)
      const added = transaction.payments.at(-1)
      if (added === undefined) throw new Error('the payment was not made')
      return { transactionId: transaction.transactionId, paymentId: added.id }
    },
    addFault(fault) {
      state.faults.push(withMemberName(() => readInput(faultInput, JSON.stringify(fault))))
    },
    clearFaults() {
      state.faults.length = 0
    },
    listCalls(command) {
      return listEntries(state.journal, command)
    },
  }
}

function addPayment(
  state: SandboxState,
  {
    amount,
    orderAmount,
    paymentMethod = 'ATM',
    status = 'SUCCESS',
    paymentId,
    ...members
  }: PaymentWish,
): SandboxTransaction {
  const payments = [{ id: paymentId, amount, paymentMethod, status }]
  const input = readInput(
    transactionInput,
    JSON.stringify({ ...members, amount: orderAmount, payments }),
  )
  return addTransaction(state, findMerchant(state, input.merchantCode), input)
}

/** Puts the member of a `ControlError` into the message of the error it throws. */
function withMemberName<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof ControlError)) throw error
    throw new Error(`${error.path.replace('payments.0.', '')}: ${error.message}`, { cause: error })
  }
}
