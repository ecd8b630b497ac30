import { Gauge, type Registry } from 'prom-client'

/** The change feed, and the requests that wait for changes. */
export function createFeedMetrics(registry: Registry) {
  const registers = [registry]
  return {
    waitingReaders: new Gauge({
      name: 'waiting_readers',
      help: 'Open requests with ?wait= and open streams that are waiting for a change',
      registers,
    }),
    eventStreams: new Gauge({
      name: 'event_streams',
      help: 'Open streams of the change feed',
      registers,
    }),
    eventsUnpublished: new Gauge({
      name: 'events_unpublished',
      help: 'Events without a position in the feed, up to 10,000',
      registers,
    }),
  }
}
