import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createMetrics } from '../../src/metrics.ts'
import { readExpression } from './promql.ts'

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')

const Labelled = z.object({ name: z.string(), type: z.string(), labelNames: z.array(z.string()) })

const { registry } = createMetrics()
const metrics = new Map(
  registry.getMetricsAsArray().map((metric) => {
    const { name, type, labelNames } = Labelled.parse(metric)
    return [name, { type, labelNames }] as const
  }),
)
/** The labels that Prometheus adds. */
const TARGET = ['job', 'instance', 'role']

/** Returns the labels that a series may have; undefined if no metric produces it. */
function findLabels(series: string): readonly string[] | undefined {
  if (series === 'up') return TARGET
  const name = series.replace(/_(bucket|sum|count)$/, '')
  const known = metrics.get(series) ?? metrics.get(name)
  // A histogram has only partial series.
  if (!known || (known.type === 'histogram') !== (name !== series)) return undefined
  return [...TARGET, ...known.labelNames, ...(series.endsWith('_bucket') ? ['le'] : [])]
}

/** Describes the mismatches between an expression and the registry. */
function findFaults(expression: string): string[] {
  const { selectors, groups } = readExpression(expression)
  if (selectors.length === 0) return [`reads nothing: ${expression}`]
  const faults = selectors.flatMap(({ metric, labels }) => {
    const known = findLabels(metric)
    if (!known) return [`no metric ${metric}`]
    return labels.filter((one) => !known.includes(one)).map((one) => `no ${one} of ${metric}`)
  })
  const all = selectors.flatMap(({ metric }) => findLabels(metric) ?? [])
  return [...faults, ...groups.filter((one) => !all.includes(one)).map((one) => `no label ${one}`)]
}

const rules = read('ops/prometheus/alerts.yml')
  .split(/^ {6}- alert: /m)
  .slice(1)
  .map((text) => {
    const expression = /^ {8}expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)/m.exec(text)
    return {
      name: /^\w+/.exec(text)?.[0] ?? '',
      expression: expression?.[1] ?? expression?.[2] ?? '',
      text,
    }
  })

const Panel = z.object({
  id: z.int(),
  type: z.enum(['row', 'timeseries']),
  title: z.string().min(3),
  datasource: z.object({ uid: z.literal(`\${datasource}`) }).optional(),
  gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }),
  targets: z.array(z.object({ refId: z.string(), expr: z.string() })).default([]),
})
const Dashboard = z.object({
  uid: z.literal('ipn-processor'),
  templating: z.object({ list: z.array(z.object({ name: z.string(), type: z.string() })) }),
  annotations: z.object({ list: z.array(z.object({ expr: z.string() })) }),
  panels: z.array(Panel),
})

const readDashboard = () => Dashboard.parse(JSON.parse(read('ops/grafana/dashboard.json')))

describe('the reader of expressions', () => {
  it('and the registry reveal mismatches', () => {
    expect(findFaults('sum(rate(ipn_recieved_total[5m]))')).toEqual([
      'no metric ipn_recieved_total',
    ])
    expect(findFaults('refunds{state="unknown"}')).toEqual(['no state of refunds'])
    expect(findFaults('ipn_ack_seconds > 1')).toEqual(['no metric ipn_ack_seconds'])
    expect(findFaults('sum by (kind) (refunds)')).toEqual(['no label kind'])
    expect(findFaults('1 > 2')).toEqual(['reads nothing: 1 > 2'])
  })
})

describe('every alert', () => {
  it('uses existing metrics and labels', () => {
    expect(rules.length).toBeGreaterThan(15)
    const faults = rules.flatMap(({ name, expression }) =>
      findFaults(expression).map((fault) => `${name}: ${fault}`),
    )
    expect(faults).toEqual([])
  })

  it('has a delay and a severity, and describes its meaning and what to do', () => {
    for (const { name, text } of rules) {
      expect([name, /^ {8}for: \d+m$/m.test(text)]).toEqual([name, true])
      expect([name, /^ {8}labels: \{ severity: (page|ticket) \}$/m.test(text)]).toEqual([
        name,
        true,
      ])
      expect([name, /^ {10}summary: .{10,}$/m.test(text)]).toEqual([name, true])
      expect([name, /^ {10}description: (>-\n {12})?.{20,}/m.test(text)]).toEqual([name, true])
    }
    expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length)
  })

  it('quotes log lines as the service writes them', () => {
    const sources = readdirSync(new URL('../../src', import.meta.url), {
      recursive: true,
      encoding: 'utf8',
    }).filter((file) => file.endsWith('.ts'))
    const source = sources.map((file) => read(`src/${file}`)).join('\n')
    const quoted = rules.flatMap(({ text }) =>
      [...text.replace(/\s+/g, ' ').matchAll(/"([a-z][^"{}]+)"/g)].flatMap(([, line = '']) =>
        / /.test(line) ? [line] : [],
      ),
    )
    expect(quoted.length).toBeGreaterThan(3)
    const isWritten = (line: string) =>
      source.includes(line) || source.includes(line.replace(/\w+ loop/, `\${name} loop`))
    expect(quoted.filter((line) => !isWritten(line))).toEqual([])
  })

  it('is tested both when it must fire and when it must not', () => {
    const tries = read('ops/prometheus/alerts.test.yml').split('\n')
    const alertsOf = (end: RegExp) =>
      tries.filter((line) => end.test(line)).map((line) => /alertname(=~?)"([^"]+)"/.exec(line))
    const raised = alertsOf(/value: 1 \}\] \}$/).map((match) => match?.[2])
    const quiet = alertsOf(/exp_samples: \[\] \}$/).map((match) => new RegExp(`^(${match?.[2]})$`))
    expect(rules.filter(({ name }) => !raised.includes(name)).map(({ name }) => name)).toEqual([])
    const loud = rules.filter(({ name }) => !quiet.some((form) => form.test(name)))
    expect(loud.map(({ name }) => name)).toEqual([])
  })
})

describe('the dashboard', () => {
  const { panels, templating, annotations } = readDashboard()
  const charts = panels.filter(({ type }) => type === 'timeseries')

  it('uses existing metrics and labels of the selected data source', () => {
    const expressions = charts.flatMap(({ targets }) => targets.map(({ expr }) => expr))
    const all = [...expressions, ...annotations.list.map(({ expr }) => expr)]
    expect(all.length).toBeGreaterThan(30)
    expect(all.flatMap(findFaults)).toEqual([])
    const variables = templating.list.map(({ name }) => name)
    expect(variables).toEqual(['datasource', 'job', 'instance'])
    const used = all.flatMap((expr) => [...expr.matchAll(/\$(\w+)/g)].map(([, name]) => name))
    expect([...new Set(used)].sort()).toEqual(['__rate_interval', 'instance', 'job'])
    expect(charts.filter(({ datasource }) => !datasource)).toEqual([])
  })

  it('shows every metric of the service', () => {
    const shown = JSON.stringify(charts)
    const own = [...metrics.keys()].filter((name) => !/^(process|nodejs)_/.test(name))
    expect(own.filter((name) => !shown.includes(name))).toEqual([])
  })

  it('has panels with unique ids that do not overlap, under the titles of their groups', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const groups = panels.filter(({ type }) => type === 'row').map(({ title }) => title)
    expect(groups).toEqual([
      ...['Intake', 'Sync', 'Gateway', 'Refunds', 'Feed and webhooks', 'Order systems'],
      ...['Process', 'Audit log'],
    ])
    const taken = new Map<string, number>()
    for (const { id, gridPos, targets, type } of panels) {
      expect([id, targets.length > 0]).toEqual([id, type === 'timeseries'])
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length)
      expect([id, gridPos.x + gridPos.w <= 24]).toEqual([id, true])
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect([id, taken.get(`${x} ${y}`)]).toEqual([id, undefined])
          taken.set(`${x} ${y}`, id)
        }
      }
    }
  })
})

it('the documentation lists every metric of the service', () => {
  const text = read('docs/reference.md')
  const own = [...metrics.keys()].filter((name) => !/^(process|nodejs)_/.test(name))
  expect(own.filter((name) => !text.includes(`\`${name}`))).toEqual([])
})
