import { nameOperation } from '../access/audit.ts'
import { narrowMerchants } from '../access/authenticate.ts'
import { DomainError } from '../errors.ts'
import { Card } from '../platform/html/components.tsx'
import { listReasons, MAX_REASONS, ReasonLabel, saveReasons } from '../refunds/reasons.ts'
import { List } from './cells.tsx'
import { ActionForm, listOptions, Select, TextArea } from './forms.tsx'
import { definePage, InvalidFieldsError } from './page.ts'
import { findText, listKeys } from './texts/text.ts'
import { t, usePerson } from './view.ts'

const PATH = '/console/reasons'

const USUAL = listKeys('reasons.default').map((name) => `reasons.default.${name}` as const)

/** Lists the usual reasons as they are stored, in English, and in the reader's language. */
export const listUsualReasons = () =>
  USUAL.map((key) => [findText('en', key) ?? key, t(key)] as const)

/** Translates a usual reason into the reader's language, also before a remark. */
export function nameReason(stored: string): string {
  const usual = listUsualReasons().find(([own]) => `${stored}:`.startsWith(`${own}:`))
  return usual === undefined ? stored : usual[1] + stored.slice(usual[0].length)
}

export const reasonsPage = definePage<string>({
  path: PATH,
  role: 'admin',
  load(_, c) {
    const named = c.get('form')?.merchant ?? c.req.query('merchant')
    const { merchants } = c.get('access')
    const [merchantCode] = named === undefined ? merchants : narrowMerchants(c.get('access'), named)
    if (merchantCode !== undefined) return merchantCode
    throw new DomainError('merchant_not_found', `No merchant account ${named ?? ''}`)
  },
  async show(ctx, _, merchantCode) {
    const { merchants } = usePerson().access
    const form = { action: PATH, submit: t('account.reading.save') }
    const own = (await listReasons(ctx, merchantCode)).join('\n')
    return {
      title: t('frame.pages.reasons'),
      current: 'reasons',
      body: (
        <>
          <p>{t('reasons.intro')}</p>
          {merchants.length > 1 ? <ChooseAccount {...{ merchants, merchantCode }} /> : null}
          <Card title={t('reasons.list', { merchantCode })}>
            <ActionForm {...form} fields={{ merchant: merchantCode }} values={{ reasons: own }}>
              {(field) => (
                <TextArea
                  {...field('reasons', t('reasons.label'), t('reasons.hint'))}
                  {...{ rows: 12, maxlength: 5_000 }}
                />
              )}
            </ActionForm>
            {own === '' ? (
              <>
                <p>{t('reasons.defaults')}</p>
                <List items={listUsualReasons().map(([, text]) => text)} />
              </>
            ) : null}
          </Card>
        </>
      ),
    }
  },
  actions: {
    '': {
      async run({ ctx, c, access, of: merchantCode, fields }) {
        const labels = readLabels(fields.reasons ?? '')
        const change = { merchantCode, actor: access, operation: nameOperation(c) }
        await saveReasons(ctx, change, labels)
        return { to: `${PATH}?merchant=${encodeURIComponent(merchantCode)}`, notice: 'saved' }
      },
    },
  },
})

function readLabels(text: string): string[] {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  const labels = lines.map((line) => ReasonLabel.safeParse(line))
  const read = labels.flatMap(({ data }) => (data === undefined ? [] : [data]))
  const isTwice = new Set(read.map((one) => one.toLowerCase())).size < read.length
  const problem =
    read.length < lines.length
      ? t('reasons.problems.label')
      : read.length > MAX_REASONS
        ? t('reasons.problems.full', { most: MAX_REASONS })
        : isTwice
          ? t('reasons.problems.exists')
          : undefined
  if (problem !== undefined) throw new InvalidFieldsError({ reasons: problem })
  return read
}

function ChooseAccount(props: { merchants: readonly string[]; merchantCode: string }) {
  const { merchants, merchantCode } = props
  return (
    <form method="get" action={PATH}>
      <Select
        {...{ name: 'merchant', label: t('field.account'), value: merchantCode }}
        options={listOptions(merchants)}
      />
      <button class="quiet" type="submit">
        {t('lists.submit')}
      </button>
    </form>
  )
}
