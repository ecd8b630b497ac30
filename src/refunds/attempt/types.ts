import type { Context } from '../../context.ts'
import type { GatewayCall, PreparedCall } from '../../gateway/types.ts'
import type { BreakerPermit } from '../../platform/concurrency/circuit-breaker.ts'
import type { RefundRow } from '../types.ts'

/** The context needed to prepare an attempt. */
export type AttemptContext = Pick<Context, 'config' | 'encryption' | 'gateway' | 'log'>

/** Permission to send one refund. */
export type SendPermit = {
  /** The circuit breaker's permit for the call. */
  breaker: BreakerPermit
  /** `performance.now()` after which the call must not start: the lease would not outlast it. */
  sendBefore: number
}

/** A recorded attempt, which may be sent once the record is committed. */
export type Attempt = {
  refundId: string
  attemptId: number
  prepared: PreparedCall<string | undefined>
  /** The refund before the attempt, restored if no byte was written, and with it. */
  before: RefundRow
  recorded: RefundRow
  snapshotCallId: number
  /** The receiver's account number, masked in the gateway's message before it is stored. */
  accountNumber: string | undefined
  permit: SendPermit
}

/** An attempt and its outcome. */
export type SentAttempt = { attempt: Attempt; call: GatewayCall<string | undefined> }
