import { z } from 'zod'

export type Family = { help: string; type: string; samples: Sample[] }
export type Sample = { name: string; labels: Record<string, string>; value: number }

const Value = z.stringFormat('value', /^(NaN|[+-]Inf|[-+.e\d]+)$/i)

/**
 * Parses Prometheus' text format strictly: every sample must follow the HELP and TYPE lines of its family.
 * @returns the families by name
 * @throws Error naming the first invalid line
 */
export function readExposition(text: string): Map<string, Family> {
  const families = new Map<string, Family>()
  const helps = new Map<string, string>()
  let last = ''
  for (const line of text.split('\n')) {
    if (line === '') continue
    const [, keyword, named = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? []
    if (keyword === 'HELP') helps.set(named, rest)
    else if (keyword === 'TYPE') {
      const help = helps.get(named)
      if (help === undefined || families.has(named))
        throw new Error(`no HELP, or a repeated one: ${line}`)
      families.set(named, { help, type: rest, samples: [] })
      last = named
    } else {
      const sample = readSample(line)
      const family = families.get(last)
      const suffixes = family?.type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
      if (!suffixes.some((suffix) => sample.name === last + suffix))
        throw new Error(`not after its TYPE: ${line}`)
      family?.samples.push(sample)
    }
  }
  return families
}

function readSample(line: string): Sample {
  const [, name = '', braces = '', value = ''] =
    /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
  if (name === '' || !Value.safeParse(value).success) throw new Error(`not a sample: ${line}`)
  const pairs = [...braces.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/g)]
  if (pairs.map(([pair]) => pair).join('') !== braces) throw new Error(`invalid labels: ${line}`)
  const labels = Object.fromEntries(pairs.map(([, label = '', text = '']) => [label, text]))
  return { name, labels, value: Number(value.replace(/^\+?Inf$/, 'Infinity')) }
}
