import { z } from '@hono/zod-openapi'
import type { DiscrepancyRow } from '../../discrepancies/kinds.ts'
import { Discrepancy, listDiscrepancies, showDiscrepancy } from '../../discrepancies/routes.ts'
import { cutPage } from '../../http/list.ts'
import { Badge, Time } from '../../platform/html/components.tsx'
import { discrepancyPath, storyPath } from '../paths.ts'
import { TEXTS } from '../texts/en.ts'
import { describeSide, nameKind } from '../words.ts'
import type { ListKind } from './list-kind.ts'

const { columns, open, resolved } = TEXTS.lists

/** Discrepancies, newest first. */
export const DISCREPANCIES: ListKind<z.infer<typeof Discrepancy>> = {
  name: 'discrepancies',
  scope: 'ops',
  filters: [{ name: 'kind', kind: 'choice', choices: TEXTS.discrepancies.kinds }],
  idForm: z.string().regex(/^\d{1,18}$/),
  async load(ctx, { merchants, values: { kind }, limit, after }) {
    const rows = await listDiscrepancies(ctx, { merchants, kind }, limit, after)
    return cutPage(rows, limit, locate, showDiscrepancy)
  },
  schema: Discrepancy,
  columns: [
    { title: columns.kind },
    { title: columns.status },
    { title: columns.ours },
    { title: columns.theirs },
    { title: columns.transaction },
    { title: columns.account },
    { title: columns.time },
  ],
  show: (row) => [
    <a href={discrepancyPath(row.merchantCode, row.id)}>{nameKind(row.kind)}</a>,
    row.resolvedAt === null ? (
      <Badge tone="warn">{open}</Badge>
    ) : (
      <Badge tone="good">{resolved}</Badge>
    ),
    describeSide(row.ours),
    describeSide(row.theirs),
    <a href={storyPath(row)}>{row.transactionId}</a>,
    row.merchantCode,
    <Time iso={row.firstSeenAt} />,
  ],
}

const locate = ({ at, id, merchantCode }: DiscrepancyRow) => ({
  time: at,
  id: String(id),
  merchantCode,
})
