import type { z } from 'zod'
import { DEMO_ACCOUNT } from '../config/accounts.ts'
import { parseBody } from './control.ts'
import { listEntries } from './exchange.ts'
import { ControlError, type Fault, faultInput, readInput, transactionInput } from './input.ts'
import { addTransaction } from './ledger.ts'
import { sendPaymentIpn } from './notify.ts'
import { startSandbox } from './start.ts'
import {
  findMerchant,
  type JournalEntry,
  type SandboxOptions,
  type SandboxState,
  type SandboxTransaction,
} from './state.ts'

/** A payment to make. Defaults: method ATM, status SUCCESS, generated ids, the first account. */
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

/** A fault to add. Defaults: until the faults are cleared, always, code 1, and a second for kind `delay`. */
export type FaultWish = Pick<Fault, 'command' | 'kind'> & Partial<Fault>

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
      state.faults.push(withMemberName(() => readMembers(faultInput, fault)))
    },
    clearFaults() {
      state.faults.length = 0
    },
    listCalls(command) {
      return listEntries(state, command)
    },
  }
}

function addPayment(state: SandboxState, payment: PaymentWish): SandboxTransaction {
  const { amount, orderAmount, paymentId, ...members } = payment
  const { paymentMethod = 'ATM', status = 'SUCCESS', ...others } = members
  const payments = [{ id: paymentId, amount, paymentMethod, status }]
  const input = readMembers(transactionInput, { ...others, amount: orderAmount, payments })
  return addTransaction(state, findMerchant(state, input.merchantCode), input)
}

/** Reads the members as a control route reads its body. */
function readMembers<T>(schema: z.ZodType<T>, members: object): T {
  return readInput(schema, parseBody(JSON.stringify(members)))
}

/** Turns a `ControlError` into an error whose message names the member. */
function withMemberName<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof ControlError)) throw error
    throw new Error(`${error.path.replace('payments.0.', '')}: ${error.message}`, { cause: error })
  }
}
