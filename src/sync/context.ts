import type { Context } from '../context.ts'
import type { Batcher } from '../platform/concurrency/batcher.ts'
import type { CallPace } from '../platform/concurrency/call-pace.ts'
import type { ConcurrencyLimiter } from '../platform/concurrency/concurrency-limiter.ts'
import type { AnswerCommit, QueryAnswer } from './types.ts'
import type { UnconfirmedQueries } from './unconfirmed-share.ts'

export type SyncContext = Context & {
  /** Bounds the transactions this process syncs at once; each makes one gateway call at a time. */
  limiter: ConcurrencyLimiter
  unconfirmedQueries: UnconfirmedQueries
  /** How long the queries of each account take. */
  queryPace: CallPace
  /** Answers that share a commit. */
  answerCommits: Batcher<QueryAnswer, AnswerCommit>
}
