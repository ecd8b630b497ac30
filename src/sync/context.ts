import type { Context } from '../context.ts'
import type { Batcher } from '../platform/concurrency/batcher.ts'
import type { ConcurrencyLimiter } from '../platform/concurrency/concurrency-limiter.ts'
import type { AnswerCommit, QueryAnswer } from './types.ts'

export type SyncContext = Context & {
  /** Bounds the transactions this process syncs at once; each makes one gateway call at a time. */
  limiter: ConcurrencyLimiter
  /** Answers that share a commit. */
  answerCommits: Batcher<QueryAnswer, AnswerCommit>
}
