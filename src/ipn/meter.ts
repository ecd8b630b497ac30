import { describeMethod } from '../http/app.ts'
import { VERDICTS } from '../metrics.ts'
import type { IpnAnswer } from './answer.ts'
import type { IpnContext } from './context.ts'

/** Records an answer, and the time since its request arrived (ms). */
export type IpnMeter = (method: string, answer: IpnAnswer, ms: number) => void

/** Measures notification requests, as a request and as a notification. Their series are looked up once. */
export function createIpnMeter({ metrics }: Pick<IpnContext, 'metrics'>): IpnMeter {
  const { httpRequest, ipnAck, ipnReceived } = metrics
  const verdicts = new Map(VERDICTS.map((verdict) => [verdict, ipnReceived.labels({ verdict })]))
  const requests = new Map<string, { observe(seconds: number): void }>()

  function findRequests(method: string, status: number): { observe(seconds: number): void } {
    const name = describeMethod(method)
    const key = `${name} ${status}`
    const known = requests.get(key)
    if (known) return known
    const labels = { route: '/ipn', method: name, status: `${String(status)[0]}xx` }
    const series = httpRequest.labels(labels)
    requests.set(key, series)
    return series
  }

  return (method, { status, verdict }, ms) => {
    verdicts.get(verdict)?.inc()
    ipnAck.observe(ms / 1000)
    findRequests(method, status).observe(ms / 1000)
  }
}
