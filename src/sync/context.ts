import type { Context } from '../context.ts'
import type { Batcher } from '../platform/concurrency/batcher.ts'
import type { Slots } from '../platform/concurrency/slots.ts'
import type { AnswerCommit, QueryAnswer } from './types.ts'

/** The queries of unconfirmed transactions that this process makes now. */
export type UnconfirmedQueries = { running: number }

export type SyncContext = Context & {
  /** Calls to the gateway in flight, by merchant account: a claim holds one until its call has ended. */
  callSlots: Slots
  /** Answers that are committed while their call slots are free again. It bounds those that wait in memory. */
  commitSlots: Slots
  unconfirmedQueries: UnconfirmedQueries
  /** Answers that share a commit. */
  answerCommits: Batcher<QueryAnswer, AnswerCommit>
}
