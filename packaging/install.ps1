# Installs the command `tamis` on Windows from a release, and its completions.
# An archive whose SHA-256 isn't that of the release's SHA256SUMS is refused, and nothing is installed.
#
#   .\install.ps1 [-Version VERSION] [-Prefix FOLDER] [-Releases URL]
param(
    [string]$Version = "",
    [string]$Prefix = "$env:LOCALAPPDATA\Programs\tamis",
    [string]$Releases = "https://github.com/tamis-rs/tamis/releases"
)
$ErrorActionPreference = "Stop"
$ProgressPreference = "SilentlyContinue"

if (-not [Environment]::Is64BitOperatingSystem) {
    throw "tamis: no program for this system, only for 64-bit Windows; cargo install tamis-cli builds one"
}

$Work = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
New-Item -ItemType Directory $Work | Out-Null
try {
    if ($Version -eq "") {
        Invoke-WebRequest -UseBasicParsing "$Releases/latest/download/VERSION" -OutFile "$Work\VERSION"
        $Version = (Get-Content "$Work\VERSION" -Raw).Trim()
    }
    $Version = $Version -replace "^v", ""
    if ($Version -notmatch "^[0-9A-Za-z.+-]+$") {
        throw "tamis: expected a version such as 1.2.3, got ""$Version"""
    }
    $Name = "tamis-v$Version-x86_64-pc-windows-msvc"
    $From = "$Releases/download/v$Version"

    Invoke-WebRequest -UseBasicParsing "$From/SHA256SUMS" -OutFile "$Work\SHA256SUMS"
    $Pattern = "^([0-9a-f]{64}) [ *](\./)?" + [Regex]::Escape("$Name.zip") + "$"
    $Lines = @(Get-Content "$Work\SHA256SUMS" | Where-Object { $_ -cmatch $Pattern })
    if ($Lines.Count -ne 1) {
        throw "tamis: $From/SHA256SUMS: expected one line for $Name.zip, got $($Lines.Count); nothing is installed"
    }
    $Expected = $Lines[0].Substring(0, 64)
    Invoke-WebRequest -UseBasicParsing "$From/$Name.zip" -OutFile "$Work\archive.zip"
    $Got = (Get-FileHash -Algorithm SHA256 "$Work\archive.zip").Hash.ToLowerInvariant()
    if ($Got -cne $Expected) {
        throw "tamis: $Name.zip: expected the SHA-256 $Expected, got $Got; nothing is installed"
    }

    Expand-Archive "$Work\archive.zip" $Work
    & "$Work\$Name\tamis.exe" --version
    if ($LASTEXITCODE -ne 0) {
        throw "tamis: $Name.zip: its program does not run here; nothing is installed"
    }
    New-Item -ItemType Directory -Force "$Prefix\bin" | Out-Null
    Copy-Item -Force "$Work\$Name\tamis.exe" "$Prefix\bin\tamis.exe"
    Copy-Item -Force "$Work\$Name\completions\tamis.powershell" "$Prefix\tamis.ps1"
    if (";$env:PATH;" -notlike "*;$Prefix\bin;*") {
        Write-Output "hint: $Prefix\bin is not in PATH"
    }
    Write-Output "completions: . $Prefix\tamis.ps1 in `$PROFILE"
} finally {
    Remove-Item -Recurse -Force $Work
}
