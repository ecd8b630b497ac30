import type { FeedFilter, FeedPage } from './types.ts'

/** Filters a page that was read without a filter, and cuts it to `limit` events. */
export function filterPage(
  page: FeedPage,
  { merchants, types, withRefunds }: FeedFilter,
  limit: number,
): FeedPage {
  const wanted = page.events.filter(
    (event) =>
      merchants.includes(event.merchantCode) &&
      types.includes(event.type) &&
      (withRefunds || !event.namesRefund),
  )
  const events = wanted.slice(0, limit)
  const last = wanted.length > limit ? events.at(-1)?.id : undefined
  return last === undefined ? { ...page, events } : { events, next: last, atEnd: false }
}
