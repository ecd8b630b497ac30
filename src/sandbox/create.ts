import { DEMO_ACCOUNT } from '../config.ts'
import { findBook } from './control/find.ts'
import { type Fault, faultInput } from './faults/faults.ts'
import { ControlError, readInput } from './input.ts'
import { notifyPayment } from './ipn/notices.ts'
import { type JournalEntry, listEntries } from './journal.ts'
import { addTransaction, transactionInput } from './paygate/transactions.ts'
import { type SandboxOptions, startSandbox } from './server.ts'
import type { SandboxState, SandboxTransaction } from './state.ts'

/** Amounts are decimal text or numbers. What is left out: ATM, SUCCESS, made-up ids, the first account. */
export type PaymentWish = {
  amount: string | number
  paymentMethod?: string
  status?: string
  currency?: string
  transactionId?: string
  paymentId?: string
  orderId?: string
  merchantCode?: string
}

/** `times` left out means always, until the faults are cleared. */
export type FaultWish = {
  command: Fault['command']
  kind: Fault['kind']
  times?: number
  probability?: number
  /** Of the kind `delay`; 1,000 unless told. */
  delayMs?: number
  code?: number
}

/** A running sandbox gateway in the hands of a test. */
export type TestSandbox = {
  /** Its address: the base of every path, of the start page and of `/sandbox`. */
  url: string
  /** Where notifications go from now on. */
  setIpnUrl(url: string): void
  /**
   * Makes a payment; when a notification address is set, resolves after its first delivery.
   * @throws Error that names the member that is wrong
   */
  makePayment(wish: PaymentWish): Promise<{ transactionId: string; paymentId: string }>
  /**
   * Misbehaves from now on.
   * @throws Error that names the member that is wrong
   */
  addFault(wish: FaultWish): void
  /** Behaves again. */
  clearFaults(): void
  /** What it was asked and what it delivered, oldest first; of one command, or everything. */
  listCalls(command?: string): JournalEntry[]
  /** Closes every connection; resolves when nothing of it runs any more. */
  stop(): Promise<void>
}

/**
 * Starts a gateway for tests: on a free port, with the demo's account, unless told otherwise. Its
 * state is in memory, and shared with no other sandbox.
 * @throws when the port cannot be listened on
 */
export async function createSandbox(options: Partial<SandboxOptions> = {}): Promise<TestSandbox> {
  const sandbox = await startSandbox({ accounts: [DEMO_ACCOUNT], ...options })
  const { state, url, setIpnUrl, stop } = sandbox
  return {
    url,
    setIpnUrl,
    stop,
    async makePayment(wish) {
      const transaction = nameWhatIsWrong(() => enterPayment(state, wish))
      await notifyPayment(state, transaction)
      const made = transaction.payments.at(-1)
      if (made === undefined) throw new Error('the payment was not made')
      return { transactionId: transaction.transactionId, paymentId: made.id }
    },
    addFault(wish) {
      state.faults.push(nameWhatIsWrong(() => readInput(faultInput, JSON.stringify(wish))))
    },
    clearFaults() {
      state.faults.length = 0
    },
    listCalls(command) {
      return listEntries(state.journal, command)
    },
  }
}

function enterPayment(
  state: SandboxState,
  { amount, paymentMethod = 'ATM', status = 'SUCCESS', paymentId, ...wish }: PaymentWish,
): SandboxTransaction {
  const payments = [{ id: paymentId, amount, paymentMethod, status }]
  const input = readInput(transactionInput, JSON.stringify({ ...wish, payments }))
  return addTransaction(state, findBook(state, input.merchantCode), input)
}

/** A refusal of control names its member beside the message; an error has the message alone. */
function nameWhatIsWrong<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof ControlError)) throw error
    throw new Error(`${error.path.replace('payments.0.', '')}: ${error.message}`, { cause: error })
  }
}
