import type { Context } from '../context.ts'
import type { CardCache } from './cache.ts'

export type CardsContext = Context & { cardCache: CardCache }
